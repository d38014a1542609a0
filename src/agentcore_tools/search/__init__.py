"""What the tools that search have in common: walking a tree, what is ignored, globs, and looking for lines."""

from agentcore_tools.search.globs import Glob as Glob
from agentcore_tools.search.place import Place as Place
from agentcore_tools.search.place import find_place as find_place
from agentcore_tools.search.place import shown_path as shown_path
from agentcore_tools.search.walk import Found as Found
from agentcore_tools.search.walk import Walked as Walked
from agentcore_tools.search.walk import walk as walk
