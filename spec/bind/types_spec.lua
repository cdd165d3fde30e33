-- spec/bind/types_spec.lua: every kind of userdata keeps its metamethods to itself, and checks what
-- they are called with.
local c = require "ltrain.c"
local lt = require "ltrain"

local data <const>, dist <const> = c.runtime.data, c.dist

-- One of each kind that a script can hold, by the name of its metatable.
local makers <const> = {
  ["ltrain.Tensor"] = function() return lt.ones(2) end,
  ["ltrain.Order"] = function() return data.order(4, 1) end,
  ["ltrain.Feed"] = function() return data.feed(data.order(4), { lt.ones(4) }, nil, {}) end,
  ["ltrain.SampleScope"] = function() return data.sample_scope() end,
  ["ltrain.Scope"] = function() return lt.no_grad() end,
  ["ltrain.Readback"] = function() return c.runtime.readback() end,
  ["ltrain.Graph"] = function() return c.runtime.graph() end,
  ["ltrain.Locale"] = function() return c.runtime.plain_locale() end,
  ["ltrain.Group"] = function() return dist.split(nil, 0, 0) end,
  ["ltrain.Work"] = function() return dist.barrier() end,
  ["ltrain.Overlap"] = function()
    local parameters = { lt.parameter(lt.ones(2)) }
    return dist.overlap({ parameters }, parameters)
  end,
  ["ltrain.Timer"] = function() return c.runtime.timer() end,
  ["ltrain.Span"] = function() return dist.span() end,
  ["ltrain.Lock"] = function() return c.runtime.process.lock(os.tmpname()) end,
  ["ltrain.Paths"] = function() return data.paths { "a" } end,
  ["ltrain.Profile"] = function()
    local profile = c.runtime.profile()
    profile:close()
    return profile
  end,
  ["ltrain.Tokenizer"] = function()
    return c.text.read("text", '{"model": {"type": "WordLevel", "vocab": {"a": 0}, '
      .. '"unk_token": "a"}}')
  end,
  ["ltrain.TokenizerTrainer"] = function() return c.text.trainer("%a", false) end,
  ["ltrain.TransformChain"] = function() return c.runtime.image.chain {} end,
  ["ltrain.Curves"] = function() return c.io.curves() end,
  ["ltrain.Inbox"] = function()
    local folder = os.tmpname()
    os.remove(folder)
    assert(c.io.make_folder(folder))
    return c.runtime.inbox.open(folder)
  end,
  ["ltrain.Http"] = function()
    return c.runtime.http.open { port = 0, connections = 4, ask_seconds = 1, read_seconds = 1,
      head_bytes = 4096, stream_bytes = 4096 }
  end,
  ["ltrain.LineServer"] = function() return c.net.serve("127.0.0.1", 0, 1024, 1024) end,
  ["ltrain.LineClient"] = function()
    return c.net.connect("127.0.0.1", c.net.serve("127.0.0.1", 0, 1024, 1024):port(), 5)
  end,
  ["ltrain.HttpClient"] = function() return c.net.http { connect_seconds = 1 } end,
  ["ltrain.HttpReader"] = function()
    return c.net.http({ connect_seconds = 1 }):read("http://127.0.0.1:1/", "", {})
  end,
  ["ltrain.FileMemory"] = function()
    local scope <close> = assert(c.io.file_memory "/tmp")
    return scope
  end,
  ["ltrain.Deferred"] = function()
    local _ <close> = lt.enable_grad()
    return c.runtime.backward_of_inputs(lt.ones({ 1 }, { requires_grad = true }):sum())
  end,
  ["ltrain.SlotSaving"] = function()
    return assert(c.io.save_slot(c.io.new_slot(), { x = lt.ones(2) }, nil, nil, {}))
  end,
  ["ltrain.Zip"] = function() return c.io.open_zip "spec/files/state_dict.pt" end,
}
-- Held by the registry, or by functions while they run; never given to a script.
local inner <const> = {
  ["ltrain.Binding"] = true,
  ["ltrain.CsvFile"] = true,
  ["ltrain.Dropping"] = true,
  ["ltrain.Ids"] = true,
  ["ltrain.ImageFeed"] = true,
  ["ltrain.JsonText"] = true,
  ["ltrain.OpenFile"] = true,
  ["ltrain.Saving"] = true,
  ["ltrain.Trace"] = true,
  ["ltrain.Walk"] = true,
  ["ltrain.Workers"] = true,
}

local kinds <const> = { ["ltrain.Tensor"] = debug.getmetatable(lt.ones(1)) }
for name, value in pairs(debug.getregistry()) do
  if type(name) == "string" and name:find "^ltrain%." and type(value) == "table" and value.__name
  then
    kinds[name] = value
  end
end

-- Everything that such a function may be handed but what it is for.
local function strangers(name)
  local all = { false, true, 1, "x", {}, print, io.stdout, coroutine.create(print) }
  for other, make in pairs(makers) do
    if other ~= name then all[#all + 1] = make() end
  end
  return all
end

local function functions_of(metatable)
  local found = {}
  for name, value in pairs(metatable) do
    if type(value) == "function" then found[name] = value end
  end
  for name, value in pairs(type(metatable.__index) == "table" and metatable.__index or {}) do
    found[name] = value
  end
  return found
end

describe("userdata", function()
  after_each(function() lt.set_grad_enabled(true) end) -- scopes that were made and left open

  it("is made here of every kind that the binding has", function()
    for name in pairs(kinds) do
      assert.is_true(makers[name] ~= nil or inner[name] == true, name)
    end
    for name, make in pairs(makers) do
      assert.equal(kinds[name], debug.getmetatable(make()), name)
    end
  end)

  it("shows scripts neither its metatable nor metamethods", function()
    for name, make in pairs(makers) do
      local one = make()
      assert.equal(name, getmetatable(one))
      assert.is_false((pcall(setmetatable, one, {})))
      for metamethod in pairs(kinds[name]) do
        local ok, found = pcall(function() return one[metamethod] end)
        assert.is_true(not ok or found == nil, name .. "." .. metamethod)
      end
    end
  end)

  for name, metatable in pairs(kinds) do
    it("checks what its functions are called with: " .. name, function()
      for key, fn in pairs(functions_of(metatable)) do
        pcall(fn)
        for _, stranger in ipairs(strangers(name)) do
          local ok, said = pcall(fn, stranger)
          if key == "__gc" and ok then assert.is_nil(said, name) end
          pcall(fn, stranger, stranger, stranger)
        end
      end
    end)
  end

  it("survives that its metamethods are called by hand, more than once", function()
    for name, make in pairs(makers) do
      for _, ending in ipairs { "__gc", "__close" } do
        local one, fn = make(), kinds[name][ending]
        for _ = 1, fn and 2 or 0 do fn(one) end
        for _, method in pairs(functions_of(kinds[name])) do
          pcall(method, one)
          pcall(method, one, 1, 1)
        end
      end
    end
    collectgarbage()
  end)

  it("has one userdata for a parameter also after __gc by hand", function()
    local weight = lt.parameter(lt.ones(2))
    local sum = (weight * 2):sum()
    kinds["ltrain.Tensor"].__gc(weight)
    sum:backward()
    assert.is_false((pcall(function() return weight.grad end)))
    assert.same({ 2 }, lt.parameter(lt.ones(2)).shape)
  end)
end)
