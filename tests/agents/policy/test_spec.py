import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.errors import BadModel, BadPlayer
from agents.policy.spec import PolicySpec, is_policy, parse_spec, served_model


def test_specs_say_which_engine_and_which_adapter() -> None:
    assert parse_spec("policy") == PolicySpec("policy")
    assert parse_spec("policy:good") == PolicySpec("policy", adapter="good")
    assert parse_spec("policy:good@12") == PolicySpec("policy", adapter="good@12")
    spec = "openai:org/model@v2@https://host:8000/v1"
    assert parse_spec(spec) == PolicySpec(spec, model="org/model@v2", url="https://host:8000/v1")


@pytest.mark.parametrize(
    "spec",
    ["policy:", "policy:a/b", "policy:a@", "policy:a@x", "policy:../a", "openai", "openai:", "openai:m", "openai:m@",
     "openai:@http://h", "openai:m@ftp://h", "openai:m@http://", "openai:m@http://h/?key=1", "random"],
)  # fmt: skip
def test_others_are_refused_in_one_line(spec: str) -> None:
    with pytest.raises(BadPlayer, match=r"needed is|policy takes") as caught:
        parse_spec(spec)
    assert "\n" not in str(caught.value)


def test_a_model_of_a_server_is_told_apart_from_a_player() -> None:
    assert served_model("m@http://h:1/v1")[2:] == ("m", "http://h:1/v1")
    for wrong in ("tiny", "m@", "@http://h", "m@ftp://h"):
        with pytest.raises(BadModel, match=f"^model: got '{wrong}', the back end openai needs MODEL@URL"):
            served_model(wrong)


@given(st.text(max_size=40))
def test_any_text_is_a_spec_or_one_line(text: str) -> None:
    for spec in (text, f"policy:{text}", f"openai:{text}"):
        try:
            assert is_policy(spec) and parse_spec(spec).engine
        except (BadPlayer, AssertionError) as error:
            assert is_policy(spec) == isinstance(error, BadPlayer)
            assert str(error).isprintable() or isinstance(error, AssertionError)
