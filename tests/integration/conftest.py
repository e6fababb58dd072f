"""The small model as a server of tools."""

from __future__ import annotations

import json
import random
import shutil
from contextlib import asynccontextmanager

import httpx
import pytest

from reference_engine.server.app import create_app
from reference_engine.server.faults import Faults
from reference_engine.server.replica import Replica
from reference_engine.server.serving import serve_app
from reference_engine.server.tool_calls.template import TOOLS_TEMPLATE
from tests.integration.tool_exchanges import MODEL


@pytest.fixture(scope="session")
def roomy_model(small_model, tmp_path_factory):
    """The small model, promising a context that holds tools as one token a byte."""
    folder = tmp_path_factory.mktemp("roomy") / "model"
    shutil.copytree(small_model, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"max_position_embeddings": 16_384}))
    return str(folder)


@pytest.fixture
def serve(small_engine, roomy_model):
    @asynccontextmanager
    async def client(*tool_faults, template=TOOLS_TEMPLATE, family="kimi", share=1.0):
        faults = Faults(tool_faults=tool_faults, share=share)
        replica = Replica(MODEL, roomy_model, faults, tool_format=family, chat_template=template)
        app = create_app(small_engine, replica, rng=random.Random(4))  # noqa: S311  # no secret
        # On loopback there is no certificate to check, and reading them for every client takes long.
        unchecked = httpx.AsyncHTTPTransport(verify=False)
        async with (
            serve_app(app) as url,
            httpx.AsyncClient(base_url=url, timeout=300, transport=unchecked) as opened,
        ):
            yield opened

    return client
