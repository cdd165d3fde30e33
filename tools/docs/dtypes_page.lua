-- tools/docs/dtypes_page.lua: the dtypes, from lt.dtypes().
local lt = require "ltrain"
local markdown = require "markdown"

-- "-128 to 127": what an integer holds.
local function values(row)
  if row.category == "boolean" then return "true, false" end
  if row.category == "floating" then return "" end
  local bits = 8 * row.size - (row.signed and 1 or 0)
  if bits > 31 then return ("-2^%d to 2^%d - 1"):format(bits, bits) end
  return ("%d to %d"):format(row.signed and -(1 << bits) or 0, (1 << bits) - 1)
end

local function facts()
  local rows = {}
  for i, row in ipairs(lt.dtypes()) do
    rows[i] = {
      markdown.code(row.name), markdown.code(row.torch_name), ("`x:%s()`"):format(row.method),
      row.category, row.size, values(row), row.safetensors,
      row.idx > 0 and ("0x%02x"):format(row.idx) or "",
    }
  end
  return markdown.table({ "dtype", "PyTorch's name", "cast", "category", "bytes", "values",
    "in safetensors", "in IDX" }, rows)
end

local function promotion()
  local columns, rows = { "" }, {}
  for i, row in ipairs(lt.dtypes()) do
    columns[i + 1] = row.name
    rows[i] = { row.name }
    for k, other in ipairs(lt.dtypes()) do
      local sum = lt.zeros({ 1 }, { dtype = row.name }) + lt.zeros({ 1 }, { dtype = other.name })
      rows[i][k + 1] = sum.dtype
    end
  end
  return markdown.table(columns, rows)
end

local FACTS <const> = [[
The type of a tensor's elements. Wherever a dtype is named (`{dtype = "f32"}`, `x:to("f32")`), its
name, PyTorch's, and that of its cast mean the same.]]

local CASTS <const> = [[
Integers are computed in 64 bits and wrap when they are stored in fewer; floats are rounded to the
nearest; f16 and bf16 are computed in f32. Floats are truncated towards zero; a value outside i64's
range is first clamped to it, and NaN becomes 0. Values other than zero become true.]]

local PROMOTION <const> = [[
The dtype of an operation's result, PyTorch's `promote_types`: the higher category (boolean,
integer, floating), and in it the smallest dtype that represents every value of both.
PyTorch leaves u16 with other integers undefined; here it follows NumPy. A Lua number takes part
only by its category: `x + 1` keeps an integer dtype, `x + 0.5` of integers is f32; so does a
tensor without dims combined with one that has some.]]

return function()
  return { {
    file = "dtypes.md", title = "dtypes", about = "element types, casts, promotion",
    source = "lt.dtypes(), the rows of runtime/tensor/dtype.def",
    text = markdown.join { "# dtypes", FACTS, facts(), "## Casts", CASTS, "## Promotion",
      PROMOTION, promotion() },
  } }
end
