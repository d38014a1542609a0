"""Images for boxes, with a desktop, an editor or a terminal that `views` opens."""

from agentcore_sandbox.images.build import BuiltImage as BuiltImage
from agentcore_sandbox.images.build import build_image as build_image
