"""What an agent may do without asking, and what a person may answer when it asks."""

from agentcore.security.answers import Approve as Approve
from agentcore.security.answers import Confirm as Confirm
from agentcore.security.answers import Reject as Reject
from agentcore.security.answers import read_answer as read_answer
from agentcore.security.policies import AlwaysConfirm as AlwaysConfirm
from agentcore.security.policies import ConfirmationPolicy as ConfirmationPolicy
from agentcore.security.policies import ConfirmRisky as ConfirmRisky
from agentcore.security.policies import NeverConfirm as NeverConfirm
from agentcore.security.policies import RecordedPolicy as RecordedPolicy
from agentcore.security.record import read_policy as read_policy
from agentcore.security.record import record_policy as record_policy
