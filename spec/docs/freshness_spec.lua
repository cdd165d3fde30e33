-- spec/docs/freshness_spec.lua: the generated pages are those that the sources give, and links lead
-- somewhere.
local child = require "spec.cli.child"

local REFERENCE <const> = "docs/reference/"

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read("a")
end

-- The pages that the generator writes into a new folder: name -> text.
local function generate()
  local folder = child.folder()
  assert(os.execute(("mkdir -p '%s/reference'"):format(folder)))
  local names = assert(loadfile("tools/generate_docs.lua"))(folder)
  local pages = {}
  for _, name in ipairs(names) do pages[name] = read(folder .. "/reference/" .. name) end
  child.remove(folder)
  return pages
end

local function first_difference(a, b)
  local n, next_a, next_b = 0, (a .. "\n"):gmatch("(.-)\n"), (b .. "\n"):gmatch("(.-)\n")
  while true do
    local x, y = next_a(), next_b()
    n = n + 1
    if x ~= y then return ("line %d: has '%s', should be '%s'"):format(n, x, y) end
    if x == nil then return "no difference" end
  end
end

local function files_in(folder)
  local list = {}
  local pipe <close> = assert(io.popen("ls " .. folder))
  for name in pipe:lines() do list[#list + 1] = name end
  return list
end

describe("docs/reference", function()
  local pages = generate()

  it("is what ./dev docs makes of the sources", function()
    for name, text in pairs(pages) do
      local there = read(REFERENCE .. name)
      assert(there == text, ("%s is out of date (run ./dev docs): %s"):format(name,
        first_difference(there, text)))
    end
  end)

  it("keeps the case of formulas and names", function()
    local texts = { "\ny = x W^T + b.", "\nmax(x, 0).", "\nx * sigmoid(x).", "\nlt.nn.init," }
    for _, text in ipairs(texts) do assert(pages["nn.md"]:find(text, 1, true), text) end
    assert(pages["nn.md"]:find("\nA lookup table of vectors", 1, true))
  end)

  it("holds no page that the list does not name", function()
    for _, name in ipairs(files_in(REFERENCE)) do
      assert(name == "README.md" or pages["README.md"]:find("](" .. name .. ")", 1, true),
        name .. " is not in README.md")
    end
  end)

  it("says by what each page was made", function()
    for name, text in pairs(pages) do
      local mark = name:find("%.1$") and '.\\"' or "<!--"
      assert(text:find(mark .. " Made by tools/generate_docs.lua from ", 1, true) == 1, name)
    end
  end)

  it("has every option of the Trainer with its meaning", function()
    for name, row in pairs(require "ltrain.trainer.setup.options") do
      assert(row.doc and row.doc ~= "", name .. " has no doc")
      assert(pages["trainer.md"]:find("`" .. name .. "`", 1, true), name)
    end
  end)
end)

describe("the manual page", function()
  local page = read "docs/ltrain.1"

  it("is roff that man prints without a warning", function()
    if not os.execute("command -v man >/dev/null && command -v groff >/dev/null") then
      pending("no man and groff")
    end
    local pipe <close> = assert(io.popen(
      "LC_ALL=C.UTF-8 MANWIDTH=100 man --warnings -E UTF-8 -l docs/ltrain.1 2>&1 >/dev/null"))
    assert.equal("", pipe:read("a"))
  end)

  it("has every word, option and exit status", function()
    local commands = require "ltrain.cli.commands"
    local plain = page:gsub("\\%-", "-"):gsub("\\f.", "")
    local function has(text) assert(plain:find(text, 1, true), text) end
    for _, word in ipairs(commands.list) do
      has("ltrain " .. word.name)
      for _, option in ipairs(word.options) do
        if not option.instead then has("--" .. option.name) end
      end
    end
    for _, row in ipairs(commands.plain) do has(row[1]) end
    for _, row in ipairs(commands.statuses) do has(".TP\n" .. row[1] .. "\n") end
    has "--max_epochs"
  end)

  it("has every variable of ltrain's and Lua's that the sources read", function()
    local pipe <close> = assert(io.popen(
      "grep -rhoE 'getenv *\\(?\"[A-Z0-9_]+\"' runtime lua stdlib"))
    local seen = 0
    for name in pipe:read("a"):gmatch('"([A-Z0-9_]+)"') do
      if name:find("^LT_") or name:find("^LTRAIN_") or name:find("^LUA_") or name:find("^OMP_") then
        seen = seen + 1
        assert(page:find(name, 1, true), name)
      end
    end
    assert(seen >= 6)
  end)
end)

describe("links in docs", function()
  local function anchors_of(text)
    local found = {}
    for title in ("\n" .. text):gmatch("\n#+ ([^\n]+)") do
      local anchor = title:lower():gsub("[^%w%s_-]", ""):gsub("%s", "-")
      found[anchor] = true
    end
    return found
  end

  -- Links that lead nowhere, as "file: link".
  local function broken_links(path)
    local folder, list = path:match("^(.*/)") or "", {}
    local text = read(path):gsub("```.-```", ""):gsub("`[^`\n]*`", "")
    for link in text:gmatch("%]%(([^)]+)%)") do
      if not link:find("^https?:") then
        local file, anchor = link:match("^([^#]*)#?(.*)$")
        local target = file == "" and path or folder .. file
        local handle = io.open(target, "rb")
        local ok = handle ~= nil
        local inside = handle and handle:read("a")
        if handle then handle:close() end
        if ok and anchor ~= "" then ok = anchors_of(inside)[anchor] end
        if not ok then list[#list + 1] = path .. ": " .. link end
      end
    end
    return list
  end

  it("lead to files and titles that are there", function()
    local broken, paths = {}, { "README.md" }
    for _, folder in ipairs { "docs/", "docs/guide/", REFERENCE } do
      for _, name in ipairs(files_in(folder .. "*.md")) do paths[#paths + 1] = name end
    end
    for _, path in ipairs(paths) do
      for _, line in ipairs(broken_links(path)) do broken[#broken + 1] = line end
    end
    assert.equal("", table.concat(broken, "\n"))
  end)
end)
