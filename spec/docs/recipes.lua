-- spec/docs/recipes.lua: the recipes of docs/adding.md: which files their blocks are, and how they
-- are proved.
local recipes = {}

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

-- The file of a block, by its first line: `PATH: ...`, which is the whole file, or
-- `PATH, below WORDS:`; nil where there is none.
local function place_of(first)
  local bare <const> = first:gsub("^%W+", ""):gsub("%s*%*/$", "")
  local path, words = bare:match "^([%w_/]+%.%w+), below (.+):$"
  if path then return path, words end
  return bare:match "^([%w_/]+/[%w_]+%.%w+): "
end

local function new_section(title)
  return { title = title, edits = {}, commands = {}, shell = {} }
end

-- Adds a block to a section: an edit where its first line is a path, or commands of a shell.
local function add_block(section, lines, language)
  if language == "sh" then table.insert(section.shell, table.concat(lines, "\n") .. "\n") end
  local path, words = place_of(lines[1])
  if not path then return end
  if words then table.remove(lines, 1) end
  table.insert(section.edits,
    { path = path, below = words, text = table.concat(lines, "\n") .. "\n" })
end

--- The sections of a page: { title =, edits = { { path =, below =, text = } }, shell = blocks of
--- commands, commands = what stands in `...` behind "Proof:" }.
function recipes.of(page)
  local list, section, block, language, is_proof = {}, new_section "", nil, nil, false
  for line in (read(page) .. "\n"):gmatch "(.-)\n" do
    if block and line == "```" then
      add_block(section, block, language)
      block = nil
    elseif block then
      block[#block + 1] = line
    elseif line:find "^```" then
      block, language = {}, line:sub(4)
    elseif line:find "^##" then
      section = new_section(line:match "^#+ (.*)")
      list[#list + 1] = section
    end
    is_proof = line:find "^Proof:" ~= nil or is_proof and line ~= ""
    for command in (is_proof and not block and line or ""):gmatch "`(%./dev [^`]+)`" do
      table.insert(section.commands, command)
    end
  end
  return list
end

--- Makes the edits of a section in the tree that is at `root`; returns the number of files.
function recipes.follow(section, root)
  local files, n = {}, 0
  for _, edit in ipairs(section.edits) do
    local path = root .. "/" .. edit.path
    if edit.below then
      local text = read(path)
      local _, at = text:find(edit.below, 1, true)
      assert(at, ("%s has no: %s"):format(edit.path, edit.below))
      local stop <const> = text:find("\n", at, true)
      write(path, text:sub(1, stop) .. edit.text .. text:sub(stop + 1))
    else
      assert(not io.open(path), edit.path .. " is there already")
      write(path, edit.text)
    end
    if not files[edit.path] then files[edit.path], n = true, n + 1 end
  end
  return n
end

return recipes
