-- spec/dist/values_spec.lua: values of Lua as bytes: what goes in comes out, and bytes that nobody
-- wrote raise an error.
-- tags: slow
local c = require "ltrain.c"
local lt = require "ltrain"
local error_of = dofile((os.getenv("LT_ROOT") or ".") .. "/spec/error_of.lua")

local encode, decode = c.dist.encode, c.dist.decode

local function again(value) return decode(encode(value)) end

describe("values that travel", function()
  it("are nil, booleans and numbers, integers apart from floats", function()
    assert.is_nil(again(nil))
    for _, value in ipairs{ true, false, 0, -1, math.maxinteger, math.mininteger, 1.0, 0.1 } do
      local got = again(value)
      assert.equal(value, got)
      assert.equal(math.type(value), math.type(got))
    end
  end)

  it("are floats bit for bit", function()
    local nan = 0 / 0
    for _, value in ipairs{ 1 / 0, -1 / 0, -0.0, 5e-324, 1 / 3, nan, -nan } do
      assert.equal(("d"):pack(value), ("d"):pack(again(value)))
    end
  end)

  it("are strings with any bytes", function()
    local all = {}
    for byte = 0, 255 do all[#all + 1] = string.char(byte) end
    for _, value in ipairs{ "", "a", "\0", "a\0b\0", table.concat(all), ("x"):rep(100000) } do
      assert.equal(value, again(value))
    end
  end)

  it("are tables with integer and string keys, nested", function()
    local value = {
      1, "two", { 3, { 4.5 } }, [-7] = "before", [10] = "after a hole", ["a\0b"] = false,
      name = { list = {}, deep = { deeper = { math.pi } } }, [""] = "empty",
    }
    assert.same(value, again(value))
    local shared = { 1 }
    assert.same({ { 1 }, { 1 } }, again{ shared, shared })
  end)

  it("are tensors of every dtype, strided ones by their elements, without history", function()
    for _, row in ipairs(lt.dtypes()) do
      local dtype = row.name
      local x = lt.tensor({ { 0, 1, 1 }, { 1, 0, 1 } }, { dtype = dtype })
      local got = again{ x = x, t = x:t() }
      assert.equal(dtype, got.x.dtype)
      assert.same(x:tolist(), got.x:tolist())
      assert.same(x:t():tolist(), got.t:tolist())
    end
    local w = lt.ones({ 2 }, { requires_grad = true })
    assert.is_false(again(w * 2).requires_grad)
    assert.same({ 0, 3 }, again(lt.zeros{ 0, 3 }).shape)
    assert.equal(7, again(lt.tensor(7)):item())
  end)

  it("refuse the rest and name the path", function()
    local refused = {
      { { a = { [3] = { b = print } } }, "value%.a%[3%]%.b is a function" },
      { { coroutine.create(print) }, "value%[1%] is a thread" },
      { io.stdout, "value is a userdata" },
      { { x = lt.nn.Linear(1, 1) }, "value%.x is an object" },
      { { [1.5] = 1 }, "value has a key that is a float" },
      { { [true] = 1 }, "value has a key that is a boolean" },
    }
    for _, case in ipairs(refused) do
      local message = error_of(function() encode(case[1]) end)
      assert.matches(case[2], message)
      assert.matches("values_spec%.lua:%d+: encode: ", message)
    end
    local loop = {}
    loop.x = { y = loop }
    assert.matches("value%.x%.y is a table that contains itself", error_of(encode, loop))
    local deep = {}
    for _ = 1, 200 do deep = { deep } end
    assert.matches("nested too deep", error_of(encode, deep))
  end)
end)

describe("bytes that nobody wrote", function()
  local value = {
    1, 2.5, "text", { x = true, [9] = false }, lt.tensor({ { 1, 2 }, { 3, 4 } }),
    lt.tensor({ 1, 0 }, { dtype = "bool" }),
  }

  it("raise when the end is missing, or something follows", function()
    local bytes = encode(value)
    for n = 0, #bytes - 1 do
      assert.matches("the received bytes are not a value", error_of(decode, bytes:sub(1, n)))
    end
    assert.matches("something follows", error_of(decode, bytes .. "\0"))
  end)

  it("raise or give a value, whatever they are", function()
    local bytes, state = encode(value), 88172645463325252
    local function random(n) -- xorshift: the same bytes at each run
      state = state ~ state << 13
      state = state ~ state >> 7
      state = state ~ state << 17
      return (state & math.maxinteger) % n
    end
    local refused = 0
    for _ = 1, 20000 do
      local damaged = { bytes:byte(1, -1) }
      for _ = 1, 1 + random(3) do
        damaged[3 + random(#damaged - 2)] = random(3) == 0 and random(8) or random(256)
      end
      local ok, message = pcall(decode, string.char(table.unpack(damaged)))
      if not ok then
        refused = refused + 1
        assert.matches("decode: the received bytes are not a value: ", message)
      end
    end
    assert.is_true(refused > 10000)
  end)

  it("raise on lengths beyond all bounds, without asking for the memory", function()
    local head, huge = "V\1", ("<i8"):pack(math.maxinteger)
    local bad = {
      head .. "\5" .. huge, head .. "\5" .. ("<i8"):pack(-1), head .. "\6" .. huge .. huge,
      head .. "\6" .. ("<i8i8"):pack(0, 1 << 40), head .. "\7\0\2" .. huge .. huge,
      head .. "\7\0\1" .. ("<i8"):pack(-4), head .. "\7\0\9", head .. "\7\99\0", head .. "\8",
      head .. "\7\7\1" .. ("<i8"):pack(1) .. "\2", "V\2\0", "X\1\0", "",
      head .. ("\6" .. ("<i8i8"):pack(1, 0)):rep(300) .. "\0",
      head .. "\6" .. ("<i8i8"):pack(0, 1) .. "\2\2",
    }
    for i, bytes in ipairs(bad) do
      assert.matches("the received bytes are not a value", error_of(decode, bytes), 1, false,
        "case " .. i)
    end
  end)
end)
