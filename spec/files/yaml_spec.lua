-- spec/files/yaml_spec.lua: values of texts of YAML, which are those of PyYAML's safe loader, but
-- for 1e-3, yes and no, which are as jsonargparse reads them.
local yaml = require "ltrain.files.yaml"

describe("a text of YAML", function()
  it("has numbers, words, booleans, lists and mappings", function()
    assert.same({ a = 1, b = -2.5, c = 1e-3, d = 1000, e = 16, f = 8, g = math.huge,
      words = { "yes", "1.0.0", "2024-01-01", "1", "true", "a: b", "" },
      flags = { true, false }, text = "two\nlines\n", folded = "one line\n", empty = {},
      nested = { { x = 1, y = { 2, 3 } } } }, yaml.decode [[
# a comment
a: 1
b: -2.5
c: 1e-3
d: 1_000
e: 0x10
f: 010
g: .inf
words: [yes, 1.0.0, 2024-01-01, "1", 'true', "a: b", '']
flags: [true, False]
text: |
  two
  lines
folded: >
  one
  line
empty: {}
absent: null
also: ~
neither:
nested:
- x: 1
  y:
  - 2
  - 3
]])
    local nan = yaml.decode "a: .nan".a
    assert(nan ~= nan)
    assert.equal("integer", math.type(yaml.decode "a: 3".a))
    assert.equal("float", math.type(yaml.decode "a: 3.".a))
  end)

  it("has anchors, aliases and merges", function()
    assert.same({ base = { a = 1, b = { 2 } }, x = { a = 3, b = { 2 } }, y = { a = 1, b = { 2 } } },
      yaml.decode "base: &base {a: 1, b: &b [2]}\nx:\n  <<: *base\n  a: 3\ny: {<<: *base, b: *b}\n")
  end)

  it("is refused with the line of what is wrong", function()
    for text, wrong in pairs {
      ["a: 1\nb: [1"] = "line 3: did not find expected ',' or ']', while parsing a flow sequence "
        .. "of line 2",
      ["a: 1\na: 2"] = "line 2: 'a' is there twice",
      ["a: *x"] = "line 1: there is no anchor &x",
      ["a:\n  b: !!python/object:os.x 1"] =
        "line 2: the tag tag:yaml.org,2002:python/object:os.x is not known",
      ["a: 1\n---\nb: 2"] = "line 2: a second document",
      [""] = "it is empty", ["~"] = "it is empty",
      ["- 1\n- null"] = "line 2: null in a list",
      ["? [1]\n: 2"] = "line 1: a name must be a word",
      [("["):rep(101) .. ("]"):rep(101)] = "line 1: deeper than 100",
      ["a: \255"] = "line 1: invalid leading UTF-8 octet",
    } do
      local value, message = yaml.decode(text)
      assert.is_nil(value)
      assert.equal(wrong, message)
    end
  end)
end)
