-- spec/cuda/index_spec.lua: what is chosen, joined and added up at indices, as on the CPU.
-- tags: threads, kernels
local both = require "spec.cuda.both"
local error_of = require "spec.error_of"
local lt = require "ltrain"

local DTYPES <const> = { "f32", "f64", "f16", "bf16", "i64", "i32", "u8", "i16", "u16", "bool" }
local FLOATS <const> = { "f32", "f64", "f16", "bf16" }

local function values(size, dtype)
  local x = lt.randn(size) * 50
  if dtype == "bool" then return x:gt(0) end
  return (dtype == "u8" or dtype == "u16") and x:abs():to(dtype) or x:to(dtype)
end

local function ids(size, most) return lt.randint(0, most, size) end

-- The same values with dims in another order in memory.
local function turned(x)
  return x:transpose(1, x.ndim):contiguous():transpose(1, x.ndim)
end

local function with_size(size, dim, n)
  local list = { table.unpack(size) }
  list[dim] = n
  return list
end

-- fn(dtype, size, dim, device) over dtypes, shapes whose rows take units of any width, dims.
local function each(dtypes, fn)
  for _, dtype in ipairs(dtypes) do
    for _, size in ipairs { { 5, 3 }, { 3, 2, 16 }, { 9 } } do
      for dim = 1, #size do
        local what = ("%s [%s], dim %d"):format(dtype, table.concat(size, ", "), dim)
        both.same_on_both(what, function(device) return fn(dtype, size, dim, device) end)
      end
    end
  end
end

local function gradient(x, fn)
  x = x:detach():requires_grad_()
  local y = fn(x)
  y:backward(lt.full(y.shape, 0.7, { dtype = y.dtype, device = y.device }))
  return x.grad
end

describe("cuda chooses", function()
  both.it("positions of a dim", function()
    each({ "f32", "f64", "bf16", "u8" }, function(dtype, size, dim, device)
      local list, x = {}, values(size, dtype):to(device)
      for _, n in ipairs { 0, 1, 33 } do
        local index = ids({ n }, size[dim]):to(device)
        list[#list + 1] = lt.index_select(x, dim, index)
        list[#list + 1] = lt.index_select(turned(x), dim, index:to("i32"))
      end
      return list
    end)
  end)

  both.it("elements of lines", function()
    each({ "f32", "f64", "bf16", "u8" }, function(dtype, size, dim, device)
      local x, index = values(size, dtype), ids(with_size(size, dim, 5), size[dim])
      x, index = x:to(device), index:to(device)
      return { lt.gather(x, dim, index), lt.gather(turned(x), dim, turned(index)) }
    end)
  end)

  both.it("rows by ids, and by several indices", function()
    both.same_on_both("embedding", function(device)
      local table_, list = lt.randn(11, 12):to(device), ids({ 3, 4 }, 11):to(device)
      local x = lt.randn(4, 5, 2, 2, 3, 2):to(device)
      local index = {}
      for k = 1, 6 do
        index[k] = lt.randint(-x.shape[k], x.shape[k], k % 2 == 0 and { 3, 1 } or { 4 }):to(device)
      end
      return {
        lt.embedding(table_, list), lt.embedding(table_:t():contiguous():t(), list:t()), x[index],
        lt.one_hot(list, 11),
      }
    end)
  end)

  both.it("sums and means of bags of rows", function()
    for _, dtype in ipairs { "f32", "f64", "bf16" } do
      both.same_on_both(dtype, function(device)
        local table_, list = lt.randn(11, 37):to(dtype):to(device), ids({ 9, 40 }, 11):to(device)
        local flat, begins = list:reshape(-1), lt.tensor({ 0, 0, 5, 200, 360 }):to(device)
        return {
          lt.embedding_bag(table_, list), lt.embedding_bag(table_, list:t(), { padding_idx = 3 }),
          lt.embedding_bag(table_, flat, { offsets = begins, padding_idx = 3 }),
          lt.embedding_bag(table_:t():contiguous():t(), flat, { offsets = begins, mode = "sum" }),
        }
      end)
    end
  end)

  both.it("sums of bags of rows by factors, up to the rounding of a product", function()
    local function weighed(device)
      lt.seed(7)
      local list <const> = ids({ 9, 40 }, 11):to(device)
      return lt.embedding_bag(lt.randn(11, 37):to(device), list,
        { mode = "sum", per_sample_weights = lt.randn(9, 40):to(device) })
    end
    both.close(weighed "cuda", weighed "cpu", 2e-6, "factors")
  end)

  both.it("the trues of a mask of several tiles", function()
    both.same_on_both("4100", function(device)
      return lt.rand({ 2, 2050 }):to(device):gt(0.9):nonzero()
    end)
  end)

  both.it("triangles and the trues of a mask", function()
    each({ "f32", "f64", "bf16", "bool" }, function(dtype, size, _, device)
      local x = values(#size == 1 and { 9, 9 } or size, dtype):to(device)
      return {
        x:tril(1), turned(x):triu(-2), x:gt(0):nonzero(), turned(x:gt(0)):nonzero(),
      }
    end)
  end)

  local function refuses(name, fn, part)
    both.it("no " .. name, function()
      for _, id in ipairs { -1, 5, 1 << 40 } do
        local index = lt.tensor({ 0, id }, { dtype = "i64" }):to("cuda")
        local text = error_of(function() return fn(index):sum():item() end)
        assert.is_truthy(text:find(part:format(id), 1, true), text)
      end
    end)
  end
  local function x(...) return lt.zeros({ ... }, { device = "cuda" }) end
  refuses("position that is not there",
    function(index) return lt.index_select(x(5, 4), 1, index) end,
    "index_select: index %d is out of 0..4")
  refuses("position that is not there, if nothing is taken",
    function(index) return lt.index_select(x(5, 0), 1, index) end,
    "index_select: index %d is out of 0..4")
  refuses("element that is not there", function(index) return lt.gather(x(5), 1, index) end,
    "gather: index %d is out of 0..4")
  refuses("id that is not there", function(index) return lt.embedding(x(5, 2), index) end,
    "embedding: index %d is out of 0..4")
  refuses("id of a bag that is not there", function(index)
    return lt.embedding_bag(x(5, 2), index, { offsets = lt.tensor({ 0 }):to(index.device) })
  end, "embedding_bag: index %d is out of 0..4")
  refuses("class that is not there", function(index) return lt.one_hot(index, 5) end,
    "one_hot: id %d is out of 0..4")
  refuses("place that is not there",
    function(index) return lt.scatter_add(x(5), 1, index, x(2)) end,
    "scatter_add: index %d is out of 0..4")
end)

describe("cuda joins", function()
  both.it("tensors along each dim, more than one launch takes", function()
    for _, dtype in ipairs { "f32", "f64", "bf16", "u8" } do
      both.same_on_both(dtype, function(device)
        local rows, equal, list = {}, {}, {}
        for k = 1, 100 do
          rows[k] = values({ k % 7, 2 }, dtype):to(device)
          equal[k] = values({ 3, 4 }, k == 2 and "i32" or dtype):to(device)
        end
        equal[3] = turned(equal[3])
        list[1] = lt.cat(rows, 1)
        for dim = 1, 3 do list[dim + 1] = lt.stack(equal, dim) end
        list[5] = lt.cat(equal, 2)
        list[6] = lt.cat({ equal[1], lt.zeros({ 0 }, { device = device }), equal[3] }, 1)
        return list
      end)
    end
  end)
end)

describe("cuda adds up", function()
  both.it("gradients of what was chosen, in the CPU's order", function()
    each(FLOATS, function(dtype, size, dim, device)
      local list, x = {}, values(size, dtype):to(device)
      for _, n in ipairs { 0, 40 } do
        local row, lines = ids({ n }, size[dim]), ids(with_size(size, dim, n), size[dim])
        row, lines = row:to(device), lines:to(device)
        list[#list + 1] = gradient(x, function(v) return lt.index_select(v, dim, row) end)
        list[#list + 1] = gradient(x, function(v) return lt.gather(v, dim, lines) end)
      end
      return list
    end)
  end)

  both.it("gradients of a table, but for padding", function()
    both.same_on_both("embedding", function(device)
      local table_, list = lt.randn(6, 12):to(device), ids({ 5, 40 }, 6):to(device)
      return {
        gradient(table_, function(t) return lt.embedding(t, list) end),
        gradient(table_, function(t) return lt.embedding(t, list, { padding_idx = 2 }) end),
      }
    end)
  end)

  both.it("sources larger than their index, lines short and long", function()
    for _, dtype in ipairs { "f32", "f64", "bf16", "i64", "u8" } do
      for _, n in ipairs { 5, 32, 33, 100 } do
        both.same_on_both(("%s, %d"):format(dtype, n), function(device)
          local at, x = ids({ n, 3 }, 6):to(device), values({ 6, 7 }, dtype):to(device)
          local source = values({ n + 2, 4 }, dtype):to(device)
          return {
            lt.scatter_add(x, 1, at, source),
            lt.scatter_add(turned(x), 2, turned(at:t()), turned(source:t())),
          }
        end)
      end
    end
  end)

  -- Whole numbers: sums of stretches are exact in any order.
  both.it("more than fits into one stretch of a place", function()
    for _, n in ipairs { 512, 513, 1025 } do
      for _, rows in ipairs { 1, 2 } do
        both.same_on_both(("%d into %d"):format(n, rows), function(device)
          local index, g = ids({ n }, rows):to(device), (lt.randn(n, 4) * 9):round():to(device)
          local x = lt.ones({ rows, 4 }, { device = device })
          local wide = g:reshape(1, n, 4):expand(2, n, 4)
          return {
            lt.index_add(x, 1, index, g), lt.index_add(x:to("i64"), 1, index, g:to("i64")),
            lt.index_add(lt.ones({ 2, rows, 4 }, { device = device }), 2, index, wide),
            lt.scatter_add(x:select(2, 1), 1, index, g:select(2, 1)),
          }
        end)
      end
    end
  end)

  both.it("nothing where rows are written: the last one stays", function()
    for _, dtype in ipairs(DTYPES) do
      both.same_on_both(dtype, function(device)
        local list = {}
        for k, size in ipairs { { 6, 4 }, { 6 }, { 6, 3, 5 }, { 6, 16 } } do
          local x, index = values(size, dtype):to(device), ids({ 40 }, 6):to(device)
          x[{ index }] = values(with_size(size, 1, 40), dtype):to(device)
          list[k] = x
        end
        return list
      end)
    end
  end)
end)
