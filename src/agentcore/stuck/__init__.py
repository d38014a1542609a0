"""Noticing that an agent goes round in circles."""

from agentcore.stuck.detector import StuckDetector as StuckDetector
from agentcore.stuck.rounds import STILL_RUNNING as STILL_RUNNING
from agentcore.stuck.thresholds import StuckThresholds as StuckThresholds
from agentcore.stuck.verdict import StuckCode as StuckCode
from agentcore.stuck.verdict import Verdict as Verdict
