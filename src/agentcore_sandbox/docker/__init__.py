"""Containers of the Docker engine as workspaces. Importing it loads neither aiodocker nor aiohttp: starting the first one does."""

from agentcore_sandbox.docker.resources import BoxInfo as BoxInfo
from agentcore_sandbox.docker.resources import list_boxes as list_boxes
from agentcore_sandbox.docker.resources import open_shell as open_shell
from agentcore_sandbox.docker.resources import prune as prune
from agentcore_sandbox.docker.resources import read_logs as read_logs
from agentcore_sandbox.docker.resources import remove_box as remove_box
from agentcore_sandbox.docker.workspace import DockerWorkspace as DockerWorkspace
