-- spec/files/json_spec.lua: lt.json.
local error_of = require "spec.error_of"
local lt = require "ltrain"

describe("lt.json", function()
  local path
  before_each(function() path = os.tmpname() end)
  after_each(function() os.remove(path) end)

  local function write(text)
    local file <close> = assert(io.open(path, "wb"))
    file:write(text)
  end

  it("writes values and reads them back", function()
    local value <const> = { a = { 1, 2.5, "x\n\"é" }, b = { c = true, d = {} }, n = -7 }
    assert.equal('{"a":[1,2.5,"x\\n\\"é"],"b":{"c":true,"d":{}},"n":-7}', lt.json.encode(value))
    assert.same(value, lt.json.decode(lt.json.encode(value)))
    assert(lt.json.write(path, value))
    assert.same(value, lt.json.read(path))
    assert.equal("integer", math.type(lt.json.decode "1"))
    assert.equal("float", math.type(lt.json.decode "1.0"))
    assert.same({ a = 1 }, lt.json.decode '{"a": 1, "b": null}')
  end)

  it("iterates over the lines of a file", function()
    assert(lt.json.write_lines(path, { { id = 1 }, { id = 2, text = "a\nb" } }))
    local seen = {}
    for record in lt.json.lines(path) do seen[#seen + 1] = record end
    assert.same({ { id = 1 }, { id = 2, text = "a\nb" } }, seen)
    write '{"a":1}\r\n\n  \n[2]'
    seen = {}
    for record in lt.json.lines(path) do seen[#seen + 1] = record end
    assert.same({ { a = 1 }, { 2 } }, seen)
  end)

  it("says where a text is not JSON", function()
    local none, why = lt.json.decode "{"
    assert.is_nil(none)
    assert.matches("line 1", why)
    write "{}\n[1\n"
    local lines <const> = lt.json.lines(path)
    assert.same({}, lines())
    assert.matches("json.lines: .*:2: ", error_of(lines))
    none, why = lt.json.read(path)
    assert.is_nil(none)
    assert.matches("^json.read: .*: ", why)
    write "null\n"
    assert.matches(":1: null is not a record", error_of(lt.json.lines(path)))
    assert.matches("^json.read: .*No such file", select(2, lt.json.read "/absent/x.json"))
    assert.matches("json.lines: .*No such file", error_of(lt.json.lines, "/absent/x.jsonl"))
    assert.matches("^json.write: cannot write .*No such", select(2, lt.json.write("/absent/x", 1)))
    assert.matches("^json.write_lines: cannot write",
      select(2, lt.json.write_lines("/absent/x", { 1 })))
  end)

  it("refuses what JSON has no form for", function()
    assert.is_string(error_of(lt.json.encode, { f = print }))
    assert.is_string(error_of(lt.json.encode, { 1, a = 2 }))
    assert.matches("text must be", error_of(lt.json.decode, 3))
    assert.matches("path must be", error_of(lt.json.read, {}))
  end)
end)
