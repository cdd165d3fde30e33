-- spec/files/csv_spec.lua: tables in text files.
local error_of = require "spec.error_of"
local lt = require "ltrain"

describe("lt.csv.read", function()
  local path
  before_each(function() path = os.tmpname() end)
  after_each(function() os.remove(path) end)

  local function read(text, options)
    local file <close> = assert(io.open(path, "wb"))
    file:write(text)
    file:close()
    return lt.csv.read(path, options)
  end

  local function list(t, name, dtype) return t:tensor(name, { dtype = dtype or "f64" }):tolist() end

  it("tells whole numbers, numbers and text apart", function()
    local t <const> = assert(read "a,b,c\n1,1.5,x\n-2,2,y\n")
    assert.equal("Table of 2 rows: a (integer), b (number), c (text)", tostring(t))
    assert.same({ "a", "b", "c" }, t.names)
    assert.equal(2, #t)
    assert.same({ 1, -2 }, list(t, "a", "i64"))
    assert.same({ 1.5, 2 }, list(t, "b"))
    assert.same({ "x", "y" }, t:text "c")
    assert.same({ { 1, 1.5 }, { -2, 2 } }, t:tensor { "a", "b" }:tolist())
  end)

  it("reads the rows that end within so many bytes", function()
    local text <const> = 'a,b\n1,"x\ny"\n2,z\n3,"un'
    local t, bytes, of = assert(read(text, { bytes = 18 }))
    assert.same({ 1, 2 }, list(t, "a", "i64"))
    assert.same({ 16, #text }, { bytes, of })
    t, bytes = assert(read(text, { bytes = 13 }))
    assert.same({ "x\ny" }, t:text "b")
    assert.equal(12, bytes)
    t, bytes, of = read("a\n1\n", { bytes = 1000 })
    assert.same({ 1, 4, 4 }, { #t, bytes, of })
  end)

  it("takes quotes, CRLF, a byte order mark, blank lines and no last newline", function()
    local t <const> = assert(read '\xef\xbb\xbf"a b",c\r\n\r\n"x, ""y""\nz",1\r\nw,2')
    assert.same({ "a b", "c" }, t.names)
    assert.same({ 'x, "y"\nz', "w" }, t:text "a b")
    assert.same({ 1, 2 }, list(t, "c"))
  end)

  it("takes fields in quotes for text, but where all fields are in quotes", function()
    assert.equal("Table of 2 rows: a (text), b (integer)", tostring(read 'a,b\n"1",2\n"3",4\n'))
    assert.equal("Table of 1 rows: a (integer), b (integer)", tostring(read '"a","b"\n"1","2"\n'))
    assert.equal("Table of 1 rows: a (integer)", tostring(read('a\n"1"\n', { types = { a =
      "integer" } })))
    assert.equal("Table of 1 rows: 1 (integer)", tostring(read('"1"\n', { header = false })))
    assert.equal("Table of 2 rows: a (number)", tostring(read 'a\n1\n""\n'))
  end)

  it("takes other delimiters and files without names", function()
    local t <const> = assert(read("1\tx,y\n2\tz\n", { delimiter = "\t", header = false }))
    assert.same({ "1", "2" }, t.names)
    assert.same({ "x,y", "z" }, t:text "2")
    local one <const> = assert(read("1;2\n", { delimiter = ";", header = false,
                                               types = { [2] = "text" } }))
    assert.same({ "2" }, one:text "2")
  end)

  it("has NaN and -1 for what is missing", function()
    local t <const> = assert(read("a,b,c\n1,x,NA\n,,null\n3,-,2.5\n", {}))
    local a <const> = list(t, "a")
    assert.same({ 1, 3 }, { a[1], a[3] })
    assert.is_true(a[2] ~= a[2])
    assert.same({ 1, -1, 0 }, (t:categorical "b"):tolist())
    assert.same({ "", "", "2.5" }, t:text "c")
    local other <const> = assert(read("a\n-999\n7\n", { missing = { "-999" } }))
    assert.is_true(list(other, "a")[1] ~= list(other, "a")[1])
  end)

  it("reads numbers as Lua does, bit for bit", function()
    local random, texts, want = 12345, { "x" }, {}
    local function draw(n)
      random = (random * 6364136223846793005 + 1442695040888963407) & math.maxinteger
      return random >> 20 & (n - 1)
    end
    for k = 1, 2000 do
      local digits = {}
      for d = 1, 1 + draw(32) do digits[d] = draw(8) + draw(2) end
      local text = table.concat(digits)
      if draw(2) == 1 then text = text:sub(1, #text // 2) .. "." .. text:sub(#text // 2 + 1) end
      if draw(2) == 1 then text = ("%se%d"):format(text, draw(512) - 256) end
      if draw(2) == 1 then text = "-" .. text end
      texts[k + 1], want[k] = text, tonumber(text:find "[.e]" and text or text .. ".0")
    end
    local t <const> = assert(read(table.concat(texts, "\n") .. "\n", { types = { x = "number" } }))
    local got <const> = list(t, "x")
    for k = 1, #want do
      assert.equal(("%a"):format(want[k]), ("%a"):format(got[k]), texts[k + 1])
    end
  end)

  it("keeps whole numbers of 64 bits exact", function()
    local t <const> = assert(read "a\n9223372036854775807\n-9223372036854775807\n")
    assert.same({ math.maxinteger, -math.maxinteger }, list(t, "a", "i64"))
    assert.equal("a (number)", tostring(assert(read "a\n9223372036854775808\n")):match "a %(%w+%)")
  end)

  it("finds out late that a column is none of numbers", function()
    local lines = { "a,b,c" }
    for k = 1, 3000 do lines[k + 1] = ("%d,%d,%d"):format(k, k, k) end
    lines[2001], lines[2002] = "x,1.5,7", "y,2,8"
    local t <const> = assert(read(table.concat(lines, "\n")))
    assert.equal("Table of 3000 rows: a (text), b (number), c (integer)", tostring(t))
    assert.same({ "1999", "x", "y", "2002" }, { table.unpack(t:text "a", 1999, 2002) })
    assert.same({ 1999, 1.5, 2, 2002 }, { table.unpack(list(t, "b"), 1999, 2002) })
  end)

  it("takes a table without rows", function()
    local t <const> = assert(read "a,b\n")
    assert.equal(0, #t)
    assert.same({ 0, 2 }, t:tensor { "a", "b" }.shape)
  end)

  it("says what is wrong with a file, and where", function()
    local function check(text, message, options)
      local none, said = read(text, options)
      assert.is_nil(none)
      assert.equal(message, (said:gsub(path, "FILE", 1)))
    end
    check("", "csv.read: FILE is empty")
    check("\xef\xbb\xbf\xef\xbb\xbfa\n1\n", "csv.read: FILE begins with two byte order marks")
    check("a,b\n1,2\n3\n", "csv.read: FILE:3: a row of 1 field: the first row has 2")
    check("a,b\n1,2,3\n", "csv.read: FILE:2: a row of more than 2 fields: the first row has 2")
    check('a\n"x\ny\n', "csv.read: FILE:2: a quote in this row is never closed")
    check('a\n"x\ny"z\n', "csv.read: FILE:3: text follows the quote that ends a field")
    check("a,a\n", "csv.read: FILE: two columns are called 'a'")
    check('a,b\n"x\n",1\nz,q\n', "csv.read: FILE:4: column 2 (b) contains 'q', which is not a "
      .. "number",
      { types = { b = "number" } })
    check("a\n1.5\n", "csv.read: FILE:2: column 1 (a) contains '1.5', which is not an integer",
      { types = { a = "integer" } })
    assert.matches("No such file", select(2, lt.csv.read "/absent/file.csv"))
  end)

  it("gives a table or a reason for whatever bytes there are", function()
    local whole <const>, seed = 'a,"b ""q"",c",d\r\n1,x,2.5\n"-3",,1e3\n', 7
    for _ = 1, 400 do
      local bytes = { whole:byte(1, -1) }
      for _ = 1, 1 + seed % 3 do
        seed = (seed * 1103515245 + 12345) % 2147483648
        bytes[1 + (seed >> 8) % #bytes] = (",\"\n\r\0x1. -e\xef"):byte(1 + (seed >> 20) % 12)
      end
      local t <const>, why = read(string.char(table.unpack(bytes, 1, 1 + (seed >> 4) % #bytes)))
      assert.is_true(t ~= nil or why:find "^csv.read: " ~= nil)
      if t then
        for _, name in ipairs(t.names) do assert.equal(#t, #t:text(name)) end
      end
    end
  end)

  it("refuses wrong options", function()
    local function check(message, options)
      assert.matches(message, error_of(read, "a\n1\n", options))
    end
    check("unknown option 'delimeter'; did you mean 'delimiter'", { delimeter = ";" })
    check("delimiter must be one character, got ';;'", { delimiter = ";;" })
    check("types.a must be 'integer', 'number' or 'text', got 'float'", { types = { a = "float" } })
    check(path:gsub("%p", "%%%0") .. ": types: there is no column 'b'", { types = { b = "text" } })
  end)
end)

describe("a Table", function()
  local t <const> = lt.csv.table { { "size", { 1.5, 2, 3.25 } }, { "kind", { "b", "a", "b" } },
                                   { "n", lt.tensor({ 7, 8, 9 }, { dtype = "i64" }) } }

  it("gives categories, sorted or as they are passed", function()
    local ids, names = t:categorical "kind"
    assert.same({ 1, 0, 1 }, ids:tolist())
    assert.same({ "a", "b" }, names)
    assert.same({ 0, -1, 0 }, (t:categorical("kind", { "b", "c" })):tolist())
    assert.same({ "7", "8", "9" }, (select(2, t:categorical "n")))
  end)

  it("gives the rows that a function or a mask chooses", function()
    local some <const> = t:where(function(row) return row.kind == "b" and row.size > 2 end)
    assert.same({ 3.25 }, some:tensor("size"):tolist())
    assert.same({ "b", "a" }, t:where(t:tensor("n"):lt(9)):text "kind")
    assert.same({ 9, 7 }, t:take(lt.tensor({ 2, 0 }, { dtype = "i64" })):tensor("n"):tolist())
    assert.equal(0, #t:where(function() return false end))
  end)

  it("writes what is read back", function()
    local path <const> = os.tmpname()
    local odd <const> = lt.csv.table { { 'a "b"', { "x,y", "", " z ", "1\n2" } },
                                       { "c", { 0.1, 1 / 3, 1e300, -2 } } }
    odd:write(path)
    local again <const> = assert(lt.csv.read(path))
    os.remove(path)
    assert.same(odd.names, again.names)
    assert.same(odd:text 'a "b"', again:text 'a "b"')
    assert.same(odd:tensor("c", { dtype = "f64" }):tolist(),
      again:tensor("c", { dtype = "f64" }):tolist())
  end)

  it("writes texts that are read back as text, whatever they look like", function()
    local path <const> = os.tmpname()
    local texts <const> = { "1", "NA", "null", "nan", "-2.5e3", " 7", "+inf", "N/A", "07", "", "x" }
    for _, names in ipairs { { "a", "n" }, { "a,b", 'c "d"' } } do
      local odd <const> = lt.csv.table { { names[1], texts }, { names[2], lt.arange(#texts) } }
      odd:write(path)
      local again <const> = assert(lt.csv.read(path))
      assert.same({ texts, odd:text(names[2]) }, { again:text(names[1]), again:text(names[2]) })
      assert.equal(tostring(odd), tostring(again))
      local ids = odd:categorical(names[1])
      assert.same(ids:tolist(), again:categorical(names[1]):tolist())
    end
    lt.csv.table { { "a", { "1", "2" } } }:write(path)
    assert.equal("Table of 2 rows: a (text)", tostring(lt.csv.read(path)))
    os.remove(path)
    assert.matches("^csv.write: cannot write .*No such", select(2, t:write "/absent/a.csv"))
  end)

  it("says what is wrong", function()
    assert.matches("there is no column 'knid'; did you mean 'kind'", error_of(t.text, t, "knid"))
    assert.matches("column 'kind' is text: see Table:categorical", error_of(t.tensor, t, "kind"))
    assert.matches("no column is named", error_of(t.tensor, t, {}))
    assert.matches("needs a bool tensor %[3%]", error_of(t.where, t, lt.ones(2)))
    assert.matches("needs a function or a bool tensor, got 3", error_of(t.where, t, 3))
    assert.matches("b has 1 values, a has 2",
      error_of(lt.csv.table, { { "a", { 1, 2 } }, { "b", { "x" } } }))
    assert.matches("b%[2%] must be text as the others, got 2",
      error_of(lt.csv.table, { { "b", { "x", 2 } } }))
    assert.matches("csv.table: columns must be a table: got 'a'", error_of(lt.csv.table, "a"))
    assert.matches("column 1 must be {name, values}, got 'a'", error_of(lt.csv.table, { "a" }))
    assert.matches("columns must be a list of {name, values}: got a field 'a'",
      error_of(lt.csv.table, { a = { 1 } }))
  end)
end)
