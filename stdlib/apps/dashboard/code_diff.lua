--- stdlib/apps/dashboard/code_diff.lua: diffs the code of two runs, file by file.
--
-- The scripts are, whatever they are called, then files of one path; of the others those of the
-- same text, and those that have most of their lines in common, were renamed.
local Catalogue = require "ltrain.apps.dashboard.Catalogue"
local c = require "ltrain.c"
local json = require "ltrain.apps.dashboard.json"
local line_diff = require "ltrain.apps.dashboard.line_diff"

local code_diff = {}

local FOLDER <const> = "code"
local MOST_FILE <const>, FILES <const>, DEPTH <const> = 1 << 20, 200, 8
local ALIKE <const> = 0.5 -- share of lines that a file has in common with what it was
local MOST_ALIKE <const> = 30 -- files that are compared with all others
local MOST_TEXT <const> = 1 << 17 -- bytes of such a file
local MOST_STEPS <const> = 3000 -- lines that differ, of all files
local MOST_LINES <const> = 10000 -- that are returned of all files

local function add_files(files, run, path, depth)
  local full = FOLDER .. (path == "" and "" or "/" .. path)
  if depth == 0 or Catalogue.stat(run, full) ~= "folder" then return end
  for _, name in ipairs(c.io.list_folder(run.full .. "/" .. full) or {}) do
    local below = path == "" and name or path .. "/" .. name
    local kind, size = Catalogue.stat(run, FOLDER .. "/" .. below)
    if kind == "folder" then
      add_files(files, run, below, depth - 1)
    elseif kind == "file" and size <= MOST_FILE and #files < FILES then
      local text = Catalogue.read(run, FOLDER .. "/" .. below, 0, MOST_FILE)
      if text then
        files[#files + 1] = below
        files.texts[below] = text
      end
    end
  end
end

-- The paths of a run's files, sorted; `texts` by path, `script` the path of the script.
local function files_of(run)
  local files = { texts = {} }
  add_files(files, run, "", DEPTH)
  table.sort(files)
  local script = run.info.script
  script = type(script) == "string" and script:match "[^/]*$"
  if files.texts[script] then files.script = script end
  return files
end

-- How often each line is in a text, and how many there are.
local function counts_of(text)
  local counts, n = {}, 0
  if #text > MOST_TEXT then return counts, n end
  for line in text:gmatch "[^\n]+" do
    line = line:match "^%s*(.-)%s*$"
    if #line > 3 then counts[line], n = (counts[line] or 0) + 1, n + 1 end
  end
  return counts, n
end

-- The share of lines that two files have in common.
local function likeness(x, y)
  if x.text == y.text then return 1 end
  local common = 0
  for line, count in next, x.counts do common = common + math.min(count, y.counts[line] or 0) end
  return x.n + y.n > 0 and 2 * common / (x.n + y.n) or 0
end

local function unpaired(files, done)
  local list = {}
  for _, path in ipairs(files) do
    if not done[path] then list[#list + 1] = path end
  end
  return list
end

-- The first of them, with what they are compared by.
local function to_compare(files, paths)
  local list = {}
  for i = 1, math.min(#paths, MOST_ALIKE) do
    local text = files.texts[paths[i]]
    local counts, n = counts_of(text)
    list[i] = { path = paths[i], text = text, counts = counts, n = n }
  end
  return list
end

-- Those of two lists that are most alike, first.
local function alike(x, y, of_x, of_y)
  local list, others = {}, to_compare(y, of_y)
  for _, one in ipairs(to_compare(x, of_x)) do
    for _, other in ipairs(others) do
      local share = likeness(one, other)
      if share >= ALIKE then list[#list + 1] = { one.path, other.path, share } end
    end
  end
  table.sort(list, function(a, b)
    if a[3] ~= b[3] then return a[3] > b[3] end
    return a[1] .. "\0" .. a[2] < b[1] .. "\0" .. b[2]
  end)
  return list
end

-- A list of {path in x or nil, path in y or nil}.
local function pair(x, y)
  local pairs_, of_x, of_y = {}, {}, {}
  local function add(a, b)
    if a and of_x[a] or b and of_y[b] then return end
    pairs_[#pairs_ + 1] = { a, b }
    if a then of_x[a] = true end
    if b then of_y[b] = true end
  end
  if x.script and y.script then add(x.script, y.script) end
  for _, path in ipairs(x) do
    if y.texts[path] then add(path, path) end
  end
  for _, one in ipairs(alike(x, y, unpaired(x, of_x), unpaired(y, of_y))) do add(one[1], one[2]) end
  for _, path in ipairs(unpaired(x, of_x)) do add(path, nil) end
  for _, path in ipairs(unpaired(y, of_y)) do add(nil, path) end
  return pairs_
end

--- {same =, files = {{file =, was =, only =, lines =}}}: `same` is absent where it is not known.
function code_diff.compare(a, b)
  local x, y = files_of(a), files_of(b)
  local answer = { files = json.list {} }
  if #x == 0 or #y == 0 then
    local p, q = a.info.script_sha256, b.info.script_sha256
    if p and q then answer.same = p == q end
    return answer
  end
  answer.same = true
  local left, lines_left = MOST_STEPS, MOST_LINES
  for _, one in ipairs(pair(x, y)) do
    local p, q = one[1], one[2]
    local text_p, text_q = p and x.texts[p] or "", q and y.texts[q] or ""
    local differs = text_p ~= text_q or not p or not q
    if differs then answer.same = false end
    if differs or p ~= q then
      local lines, steps = line_diff.between(text_p, text_q, p and q and left or 0)
      left = math.max(left - (p and q and steps or 0), 0)
      if lines_left <= 0 then lines = { { kind = "@", text = "" } } end
      lines_left = lines_left - #lines
      table.insert(answer.files, { file = q or p, was = p and q and p ~= q and p or nil,
        only = not q and "a" or not p and "b" or nil, lines = json.list(lines) })
    end
  end
  table.sort(answer.files, function(f, g) return f.file < g.file end)
  return answer
end

return code_diff
