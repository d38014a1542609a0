"""Confirmation: policies, checks, and the answers of a person."""

from agentcore.security.check import Analyzer as Analyzer
from agentcore.security.check import Check as Check
from agentcore.security.check import CheckContext as CheckContext
from agentcore.security.check import Opinion as Opinion
from agentcore.security.check import RatedAction as RatedAction
from agentcore.security.check import ToolHints as ToolHints
from agentcore.security.check import combine as combine
from agentcore.security.check import highest_risk as highest_risk
from agentcore.security.check import rated as rated
from agentcore.security.policies import AlwaysConfirm as AlwaysConfirm
from agentcore.security.policies import Approve as Approve
from agentcore.security.policies import Checks as Checks
from agentcore.security.policies import Confirm as Confirm
from agentcore.security.policies import ConfirmationPolicy as ConfirmationPolicy
from agentcore.security.policies import ConfirmRisky as ConfirmRisky
from agentcore.security.policies import NeverConfirm as NeverConfirm
from agentcore.security.policies import RecordedPolicy as RecordedPolicy
from agentcore.security.policies import Reject as Reject
from agentcore.security.policies import as_checks as as_checks
from agentcore.security.policies import is_checks as is_checks
from agentcore.security.policies import read_answer as read_answer
from agentcore.security.policies import read_checks as read_checks
from agentcore.security.policies import record_checks as record_checks
