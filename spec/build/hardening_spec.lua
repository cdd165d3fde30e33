-- spec/build/hardening_spec.lua: how the products are linked, and that they say nothing of the
-- machine that built them.
-- tags: unsanitized, slow
local BUILD <const> = os.getenv("LT_BUILD")
local ROOT <const> = os.getenv("LT_ROOT")
local SANITIZED <const> = (os.getenv("LT_SANITIZE") or "") ~= ""

local PRODUCTS <const> = { "ltrain", "ltrain-worker", "libltrain.so", "lua/5.4/ltrain.so",
  "backends/ltrain_mpi.so" }

local function output(command, ...)
  local pipe <close> = assert(io.popen(command:format(...)))
  return pipe:read("a")
end

describe("a product", function()
  -- Calls fn(path) for each that is there.
  local function each(fn)
    if not BUILD then pending("LT_BUILD names no build folder") end
    for _, name in ipairs(PRODUCTS) do
      local path = BUILD .. "/" .. name
      local file = io.open(path, "rb")
      assert(file or name:find("mpi", 1, true), path)
      if file then
        file:close()
        fn(path)
      end
    end
  end

  it("is linked before it runs, and its tables are read-only then", function()
    each(function(path)
      local header, dynamic = output("readelf -lW '%s'", path), output("readelf -dW '%s'", path)
      assert(header:find("GNU_RELRO", 1, true), path .. ": no RELRO")
      assert(header:find("GNU_STACK[^\n]* RW "), path .. ": a stack that can be executed")
      assert(dynamic:find("Flags: NOW", 1, true), path .. ": bound lazily")
    end)
  end)

  it("checks frames and buffers", function()
    if SANITIZED then pending("sanitizers check them") end
    each(function(path)
      local symbols = output("nm -D '%s'", path)
      assert(symbols:find("__stack_chk_fail", 1, true), path .. ": no stack protector")
      assert(symbols:find("__snprintf_chk", 1, true), path .. ": no checked calls")
    end)
  end)

  it("looks for libraries in no folder that depends on where it is started", function()
    each(function(path)
      for entries in output("readelf -dW '%s'", path):gmatch("R[UN]*PATH[^\n]*%[([^\n]*)%]") do
        for entry in (entries .. ":"):gmatch("([^:]*):") do
          -- Of the program, wherever that is.
          local is_beside = entry == "$ORIGIN/../lib/bundled" or entry == "$ORIGIN/../bundled"
          assert(entry:sub(1, 1) == "/" or is_beside,
            ("%s: '%s' in %s"):format(path, entry, entries))
        end
      end
    end)
  end)

  it("names no folder of the machine that built it", function()
    if SANITIZED then pending("sanitizers name the sources, wherever they are") end
    each(function(path)
      for _, folder in ipairs { ROOT, BUILD } do
        assert.equal("0\n", output("grep -cF '%s/' '%s'", folder, path), path .. ": " .. folder)
      end
    end)
  end)

  it("is a program that can lie anywhere", function()
    if not BUILD then pending("LT_BUILD names no build folder") end
    assert.matches("Type: +DYN", output("readelf -hW '%s/ltrain'", BUILD))
  end)
end)
