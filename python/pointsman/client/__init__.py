"""Clients of ``pointsman serve``, and what they return.

:class:`Client` is for ordinary code and :class:`AsyncClient` for asynchronous code; both are also names of ``pointsman``. They need httpx, which
the extra ``client`` installs, and pyarrow for batches. What the service refuses is a :class:`ServiceError`.
"""

from ._answers import Decision, Deployment, Explanation, LoggedDecision, StoredFile, Version, WhatIf, WhatIfCost
from ._async import AsyncClient
from ._batch import BatchDecisions
from ._errors import ServiceError, ServiceUnreachable
from ._sync import Client

__all__ = [
    "AsyncClient",
    "BatchDecisions",
    "Client",
    "Decision",
    "Deployment",
    "Explanation",
    "LoggedDecision",
    "ServiceError",
    "ServiceUnreachable",
    "StoredFile",
    "Version",
    "WhatIf",
    "WhatIfCost",
]
