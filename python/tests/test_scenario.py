"""Scenarios: from TOML, dictionaries and keywords, and the errors of the one parser."""

import pickle
import types

import manypath
import pytest

TEXT = """
name = "two"
duration = "3s"
topology = "two-links"

[[connection]]
name = "phone"
role = "mp"
cc = "lia"
"""

TABLES = {
    "name": "two",
    "duration": "3s",
    "topology": "two-links",
    "connection": [{"name": "phone", "role": "mp", "cc": "lia"}],
}


def test_the_same_scenario_in_three_notations():
    from_text = manypath.Scenario(TEXT)
    assert from_text == manypath.Scenario(TABLES) == manypath.Scenario(**TABLES)
    assert hash(from_text) == hash(manypath.Scenario(TABLES))
    assert (from_text.name, from_text.duration_s, from_text.connections) == ("two", 3.0, ["phone"])
    assert from_text != from_text.replace({"connection.cc": "olia"})


def test_underscores_and_absent_values():
    tables = dict(TABLES, connection=[dict(TABLES["connection"][0], send_buffer="1MB", ack_every=2, file=None, ecn=True)])
    text = manypath.Scenario(tables).text
    assert 'send-buffer = "1MB"' in text and "ecn = true" in text and "file" not in text


def test_errors_are_those_of_the_parser_with_their_place():
    with pytest.raises(manypath.ScenarioError, match="^scenario:9:6: .*lia2") as raised:
        manypath.Scenario(TEXT.replace('"lia"', '"lia2:"'))
    error = raised.value
    assert isinstance(error, manypath.ManypathError)
    assert (error.file, error.line, error.column) == ("scenario", 9, 6)
    assert error.problem in str(error) and "lia2" in error.__notes__[0]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"duration": 3}, "has no unit: write 3s"),
        ({"duration": ["3s"]}, "sequence|array|list"),
        ({"duration": None}, "missing field `duration`"),
        ({"topology": "none"}, "there is no topology 'none'"),
        ({"speed": "1Mbit"}, "speed"),
        ({"connection": []}, "nothing is sent"),
    ],
)
def test_dictionaries_have_the_same_errors(change, says):
    with pytest.raises(manypath.ScenarioError, match=says):
        manypath.Scenario({**TABLES, **change})


def test_what_is_no_scenario():
    with pytest.raises(TypeError, match="not object"):
        manypath.Scenario(duration=object())
    with pytest.raises(TypeError, match="not both"):
        manypath.Scenario(TEXT, duration="1s")
    with pytest.raises(TypeError, match="describe"):
        manypath.Scenario()
    with pytest.raises(TypeError, match="TOML or a dictionary"):
        manypath.Scenario(3)
    with pytest.raises(TypeError, match="keys"):
        manypath.Scenario({1: 2})
    deep: list = []
    deep.append(deep)
    with pytest.raises(ValueError, match="deeply"):
        manypath.Scenario(connection=deep)
    with pytest.raises(OverflowError):
        manypath.Scenario(duration=1 << 80)


def test_files_and_relative_traces(tmp_path):
    (tmp_path / "trace").write_text("1\n2\n3\n")
    path = tmp_path / "mine.toml"
    path.write_text(
        'duration = "1s"\n[[link]]\nname = "a"\ntrace = "trace"\ndelay = "1ms"\nqueue = "10packets"\n'
        '[[connection]]\nname = "c"\ncc = "reno"\npath = [{ route = ["a"] }]\n'
    )
    scenario = manypath.Scenario.from_file(path)
    assert scenario.name == "mine" and scenario.links == ["a", "a/back"]
    assert manypath.Scenario(path.read_text(), folder=tmp_path).replace({"name": "mine"}) == scenario
    with pytest.raises(manypath.ScenarioError, match="trace"):
        manypath.Scenario(path.read_text())
    with pytest.raises(FileNotFoundError, match="none.toml"):
        manypath.Scenario.from_file(tmp_path / "none.toml")


def test_relative_traces_stay_those_of_the_folder_where_it_was_read(tmp_path, monkeypatch):
    here, there = tmp_path / "here", tmp_path / "there"
    for folder, trace in ((here, "1\n2\n3\n"), (there, "5\n9\n")):
        folder.mkdir()
        (folder / "trace").write_text(trace)
    text = (
        'duration = "1s"\n[[link]]\nname = "a"\ntrace = "trace"\ndelay = "1ms"\nqueue = "10packets"\n'
        '[[connection]]\nname = "c"\ncc = "reno"\npath = [{ route = ["a"] }]\n'
    )
    (here / "mine.toml").write_text(text)
    monkeypatch.chdir(here)
    scenarios = [manypath.Scenario(text), manypath.Scenario(text, folder="."), manypath.Scenario.from_file("mine.toml")]
    keys, pickles = [scenario.key(1) for scenario in scenarios], [pickle.dumps(scenario) for scenario in scenarios]
    monkeypatch.chdir(there)
    assert manypath.Scenario(text).key(1) != keys[0]
    assert [pickle.loads(pickled).key(1) for pickled in pickles] == keys
    assert [scenario.replace({"duration": "1s"}).key(1) for scenario in scenarios] == keys


def test_any_mapping_describes(two_paths):
    link = types.MappingProxyType({"name": "link1", "loss": "1%"})
    tables = types.MappingProxyType(dict(TABLES, link=[link]))
    assert manypath.Scenario(tables) == manypath.Scenario(dict(TABLES, link=[dict(link)]))
    values = types.MappingProxyType({"duration": "600ms"})
    short = two_paths.replace(values)
    assert short == two_paths.replace(dict(values))


def test_replacing_is_that_of_the_command_line():
    scenario = manypath.Scenario(TEXT)
    changed = scenario.replace({"link.link1.loss": "1%", "connection.phone.ecn": True}).replace({"duration": "1s"})
    assert changed.duration_s == 1.0
    assert changed.replaced == ["link.link1.loss=1%", "connection.phone.ecn=true", "duration=1s"]
    with pytest.raises(manypath.ScenarioError, match="connection.none.cc=lia"):
        scenario.replace({"connection.none.cc": "lia"})
    with pytest.raises(manypath.ScenarioError, match="^duration=abc:1:10: ") as raised:
        scenario.replace({"duration": "abc"})
    # No line of the file, where nothing is wrong.
    assert not hasattr(raised.value, "__notes__")
    assert scenario.replace({"name": "it's"}).name == "it's"


def test_pickles_and_keys():
    scenario = manypath.Scenario(TEXT).replace({"connection.cc": "olia"})
    again = pickle.loads(pickle.dumps(scenario))
    assert again == scenario and again.key(1) == scenario.key(1)
    assert again.replaced == scenario.replaced and again.text == scenario.text
    assert len({scenario.key(1), scenario.key(2), manypath.Scenario(TEXT).key(1)}) == 3
    # A comment changes nothing.
    assert manypath.Scenario("# hello\n" + TEXT).key(1) == manypath.Scenario(TEXT).key(1)


def test_templates():
    assert manypath.Scenario(manypath.template()).connections
    for name, about in manypath.topologies():
        assert manypath.Scenario(manypath.template(name)).connections and about
    with pytest.raises(manypath.ScenarioError, match="there are two-links"):
        manypath.template("none")
