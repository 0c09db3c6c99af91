"""Rigid bodies, joints, springs and planes, assembled into an ordinary `System` and `State`."""

from carom.mechanisms import joints as joints
from carom.mechanisms.acting import Spring as Spring
from carom.mechanisms.body import Frame as Frame
from carom.mechanisms.body import RigidBody as RigidBody
from carom.mechanisms.mechanism import Mechanism as Mechanism
from carom.mechanisms.touching import Plane as Plane
