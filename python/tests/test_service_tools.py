"""The service as tools of others see it: a client of the Open Inference Protocol, a validator of OpenAPI, a parser of Prometheus."""

from collections.abc import Iterator
from typing import Any

import httpx
import numpy as np
import pytest
from conftest import World
from openapi_spec_validator import OpenAPIV31SpecValidator
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from serving import TASK, Service, deploy, fitted

from pointsman import Client, Policy

#: Names, types and labels of the metrics; histograms have buckets, a sum and a count.
METRICS = {
    "pointsman_decisions": ("counter", {"deployment", "action", "degraded"}),
    "pointsman_overhead_seconds": ("histogram", set()),
    "pointsman_log_commit_seconds": ("histogram", set()),
    "pointsman_log_queue_rows": ("gauge", set()),
    "pointsman_lost_log": ("counter", set()),
    "pointsman_cost": ("counter", {"deployment", "kind"}),
    "pointsman_policy_info": ("gauge", {"deployment", "version", "partition", "loss", "mode"}),
}


def deployed(service: Service, name: str, world: World, partition: str) -> Policy:
    router = fitted(partition, world)
    with Client(service.url) as client:
        deploy(client, name, router, TASK)
    return router.policy(task=TASK)


@pytest.fixture
def triton(service: Service) -> Iterator[Any]:
    from tritonclient.http import InferenceServerClient

    client = InferenceServerClient(service.url.removeprefix("http://"))
    yield client
    client.close()


def tensor(name: str, values: Any, is_binary: bool) -> Any:
    from tritonclient.http import InferInput
    from tritonclient.utils import np_to_triton_dtype

    made = InferInput(name, list(values.shape), np_to_triton_dtype(values.dtype))
    made.set_data_from_numpy(values, binary_data=is_binary)
    return made


def test_a_client_of_the_open_inference_protocol_describes_the_service(service: Service, triton: Any, world: World) -> None:
    deployed(service, "triton-described", world, "tree")
    assert triton.is_server_live() and triton.is_server_ready() and triton.is_model_ready("triton-described")
    assert not triton.is_model_ready("nobody")
    assert triton.get_server_metadata()["name"] == "pointsman"
    model = triton.get_model_metadata("triton-described")
    assert model["inputs"][0] == {"name": "probs", "datatype": "FP64", "shape": [-1, 3]}
    # No address has a version in it, so that none is listed.
    assert "versions" not in model
    assert [one["name"] for one in model["outputs"]] == ["action", "label", "decision_id", "irreducible", "reducible"]


@pytest.mark.parametrize("is_binary", [True, False], ids=["binary", "json"])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_client_of_the_open_inference_protocol_gets_the_decisions(
    service: Service, triton: Any, world: World, queries: World, is_binary: bool, kind: type
) -> None:
    name = f"triton-{is_binary}-{kind.__name__}"
    policy = deployed(service, name, world, "features:x_length=4*confidence:3")
    assert policy.features == ("length",)
    features = queries.features[:, :1]
    wanted = policy.decide(queries.probs.astype(kind), features={"length": features[:, 0].astype(kind)})
    inputs = [tensor("probs", queries.probs.astype(kind), is_binary), tensor("features", features.astype(kind), is_binary)]
    found = triton.infer(name, inputs)
    for output in ("action", "label"):
        texts = [one.decode() if isinstance(one, bytes) else one for one in found.as_numpy(output).tolist()]
        assert texts == getattr(wanted, output).tolist()
    for output in ("irreducible", "reducible"):
        np.testing.assert_array_equal(found.as_numpy(output), getattr(wanted, output))
    with Client(service.url) as client:
        logged = [one.decision_id for one in client.decisions(name)]
    assert found.as_numpy("decision_id").astype(str).tolist() == logged


def test_a_client_of_the_open_inference_protocol_repeats_and_fails(service: Service, triton: Any, world: World) -> None:
    from tritonclient.utils import InferenceServerException

    deployed(service, "triton-fails", world, "top-class:10")
    one = [tensor("probs", np.array([[0.2, 0.3, 0.5]]), True)]
    ids = {triton.infer("triton-fails", one, request_id="same").as_numpy("decision_id")[0] for _ in range(3)}
    assert len(ids) == 1
    with pytest.raises(InferenceServerException, match="sum to"):
        triton.infer("triton-fails", [tensor("probs", np.array([[0.2, 0.3, 0.6]]), True)])
    with pytest.raises(InferenceServerException, match="rows × 3"):
        triton.infer("triton-fails", [tensor("probs", np.array([[0.2, 0.8]]), True)])


def test_the_description_is_valid_openapi(service: Service) -> None:
    document = httpx.get(f"{service.url}/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    errors = [str(error) for error in OpenAPIV31SpecValidator(document).iter_errors()]
    assert not errors, errors[:3]
    document["paths"]["/v1/deployments/{deployment}/decide"]["post"]["operationId"] = "infer"
    assert list(OpenAPIV31SpecValidator(document).iter_errors()), "the validator finds what is wrong"


def test_metrics_have_the_documented_names(service: Service, world: World) -> None:
    deployed(service, "metrics", world, "top-class:10")
    with Client(service.url) as client:
        asked = [client.decide("metrics", row) for row in world.probs[:50]]
        client.decide("metrics", world.probs[0], dry_run=True)
    answer = httpx.get(f"{service.url}/metrics")
    assert answer.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    families = {family.name: family for family in parse_openmetrics(answer.text)}
    assert {name: family.type for name, family in families.items()} == {name: kind for name, (kind, _) in METRICS.items()}
    for name, (kind, labels) in METRICS.items():
        for sample in families[name].samples:
            assert set(sample.labels) - ({"le"} if kind == "histogram" else set()) == labels, sample
    own = [sample for sample in families["pointsman_decisions"].samples if sample.labels["deployment"] == "metrics"]
    assert {sample.labels["action"]: sample.value for sample in own} == {
        action: sum(one.action == action for one in asked) for action in {one.action for one in asked}
    }
    costs = [sample.value for sample in families["pointsman_cost"].samples if sample.labels["deployment"] == "metrics"]
    assert sum(costs) == pytest.approx(sum(one.costs[one.action] or 0.0 for one in asked))
    active = [sample for sample in families["pointsman_policy_info"].samples if sample.labels["deployment"] == "metrics"]
    assert [(sample.labels["version"], sample.labels["mode"], sample.value) for sample in active] == [("1", "active", 1.0)]


def test_metrics_are_read_by_the_parser_of_the_older_text_format(service: Service) -> None:
    text = httpx.get(f"{service.url}/metrics").text
    samples = {sample.name for family in parse_text(text) for sample in family.samples}
    for name, (kind, _) in METRICS.items():
        ends = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"], "gauge": [""]}[kind]
        assert {f"{name}{end}" for end in ends} <= samples or name in {"pointsman_decisions", "pointsman_cost"}, name
