"""Skills: instructions that are read when they are needed."""

from agentcore.skills.library import Library as Library
from agentcore.skills.library import Places as Places
from agentcore.skills.library import find_library as find_library
from agentcore.skills.skill import Input as Input
from agentcore.skills.skill import Origin as Origin
from agentcore.skills.skill import Skill as Skill
from agentcore.skills.source import OpenSkills as OpenSkills
from agentcore.skills.source import Skills as Skills
