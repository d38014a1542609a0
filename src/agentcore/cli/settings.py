"""What the command line is told besides its arguments. The one file of it that reads the environment.

    AGENTCORE_MODEL, AGENTCORE_BASE_URL, AGENTCORE_API_KEY    the model, as --model and --base-url say it; the key has no flag,
                                                              because other people can read a command's arguments
    AGENTCORE_CONFIRM                                         as --confirm says it
    AGENTCORE_HOME                                            where conversations are kept, as --home says it
    ANTHROPIC_API_KEY, OPENAI_API_KEY ...                     each provider's own, read where the provider is called
    VISUAL, EDITOR                                            with what arguments are edited

A flag wins over the environment.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args

from platformdirs import user_state_path
from pydantic import SecretStr

from agentcore.cli.failures import UsageError

Confirm = Literal["never", "always", "risky"]


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What flags and environment came to."""

    home: str
    """The folder that everything is kept in."""
    home_flag: str | None = None
    """The folder as a flag named it: commands that are told to a person have to name it too."""
    program: str = "agentcore"
    """How a person starts this program, as a shell reads it."""
    model: str | None = None
    base_url: str | None = None
    api_key: SecretStr | None = None
    confirm: Confirm | None = None
    editor: str | None = None
    person: str | None = None
    """The login name of who sits here, for the log of who approved what."""
    keys: frozenset[str] = field(default=frozenset(), repr=False)
    """The names of the variables that are set and look like providers' keys."""

    @property
    def conversations(self) -> str:
        """The folder of the conversations."""
        return os.path.join(self.home, "conversations")

    def command(self, words: str) -> str:
        """Give the command that a person types to do this with the same conversations."""
        place = "" if self.home_flag is None else f" --home {shlex.quote(self.home_flag)}"
        return f"{self.program} {words}{place}"


def read_settings(
    *,
    home: str | None = None,
    model: str | None = None,
    base_url: str | None = None,
    confirm: Confirm | None = None,
    environment: Mapping[str, str] | None = None,
) -> Settings:
    """Put flags and environment together.

    Raises:
        UsageError: A variable says what it can't.
    """
    # A variable that is set to nothing is one that is not set.
    variables = {name: value for name, value in (environment or os.environ).items() if value}
    key = variables.get("AGENTCORE_API_KEY")
    return Settings(
        home=os.path.abspath(os.path.expanduser(home or variables.get("AGENTCORE_HOME") or _state_folder())),
        home_flag=home,
        program=_program(variables.get("PATH")),
        model=model or variables.get("AGENTCORE_MODEL"),
        base_url=base_url or variables.get("AGENTCORE_BASE_URL"),
        api_key=None if key is None else SecretStr(key),
        confirm=confirm or _confirm(variables.get("AGENTCORE_CONFIRM")),
        editor=variables.get("VISUAL") or variables.get("EDITOR"),
        person=_login(),
        keys=frozenset(name for name in variables if name.endswith(("_KEY", "_KEY_ID", "_TOKEN", "_CREDENTIALS"))),
    )


def to_write(settings: Settings) -> Settings:
    """Give the settings back, if conversations can be kept where they say.

    Raises:
        UsageError: They can't.
    """
    place = settings.conversations
    while not os.path.lexists(place) and place != os.path.dirname(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        problem = "is no folder"
    elif not os.access(place, os.W_OK | os.X_OK):
        problem = "can't be written by you"
    else:
        return settings
    raise UsageError(
        f"Conversations can't be kept in {settings.conversations!r}: {place!r} {problem}. "
        "Name another folder: --home, or AGENTCORE_HOME."
    )


def _program(path: str | None) -> str:
    """Give the shortest words that start this very program again, by how it was started."""
    started = sys.argv[0]
    name = os.path.basename(started)
    if name == "__main__.py" and os.path.basename(os.path.dirname(started)) == "agentcore":
        script = os.path.join(os.path.dirname(sys.executable), "agentcore")
        in_full = f"{shlex.quote(sys.orig_argv[0])} -m agentcore"
    elif name == "agentcore" and "/" in started:
        script, in_full = started, shlex.quote(started)
    else:
        return "agentcore"
    found = shutil.which("agentcore", path=path)
    return "agentcore" if found is not None and os.path.realpath(found) == os.path.realpath(script) else in_full


def _state_folder() -> str:
    return str(user_state_path("agentcore", appauthor=False))


def _confirm(value: str | None) -> Confirm | None:
    if value is not None and value not in get_args(Confirm):
        raise UsageError(f"AGENTCORE_CONFIRM is {value!r}. Set it to {', '.join(get_args(Confirm))}, or not at all.")
    return cast("Confirm | None", value)


def _login() -> str | None:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a container may run as a user that has no name
        return None
