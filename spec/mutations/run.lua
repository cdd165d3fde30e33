-- spec/mutations/run.lua: runs examples with one mistake each, and prints how they end.
--
--   ./dev mutations [HOW MANY] [SEED] [OPTIONS OF ltrain run, as --devices 2]
--
-- A mistake ends well in an error at a line of the script, or in a warning that names its line. It
-- ends badly in a frame of ltrain's own, in a signal, after the limit, or in silence: with exit
-- status 0, though a name was misspelt, a number is text, a layer nil, a return gone, or a dot a
-- colon, and `ltrain check` does not name the line either. Another number, another word that is
-- shown, or a line less may be another program that is right: those are counted by themselves, and
-- which of them `ltrain check` names. Lines that an example does not come to have no mistakes. What
-- ends badly is listed, and in a line each what is an error at another line than the mistake's, and
-- the other programs; the last has the score.
local mutate = require "spec.mutations.mutate"

local ltrain <const> = os.getenv "LTRAIN" or "ltrain"
local root <const> = os.getenv "LT_ROOT" or "."
local LIMIT <const> = 60
local EXAMPLES <const> = { "mlp", "digits", "char_gpt", "fine_tune", "manual_loop",
  "tabular", "text_classification" }
local FEW <const> = "--max_epochs 1 --limit_train_batches 2 --limit_val_batches 2 "
  .. "--limit_test_batches 2 --num_sanity_val_steps 1"
-- Kinds that may end in silence: another number is another model.
local MAY_RUN <const> = { dim_changed = true, word_misspelt = true, dtype_changed = true,
                          argument_dropped = true, arguments_swapped = true,
                          self_forgotten = true, labels_as_floats = true, number_less = true,
                          number_negative = true, number_in_quotes = true, equals_turned = true,
                          line_dropped = true, lines_swapped = true }
local OPTIONS <const> = table.concat(arg, " ", 3)
-- Put before a script: writes the numbers of the lines that it comes to.
local WATCH <const> = [[local seen, file = {}, io.open("lines", "w")
file:setvbuf "no"
debug.sethook(function(_, line)
  if seen[line] or debug.getinfo(2, "S").short_src ~= "script.lua" then return end
  seen[line] = true
  file:write(line, "\n")
end, "l")]]

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return (file:read "a")
end

local function write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

local function run(folder, example, word)
  local options = word and "" or FEW .. " " .. OPTIONS
  if example == "manual_loop" and not word then options = "" end
  word = word or "run"
  local pipe <close> = assert(io.popen(("cd '%s' && timeout -k 1 %d '%s' %s script.lua %s 2>&1; "
    .. "echo \"exit $?\""):format(folder, LIMIT, ltrain, word, options)))
  local text = pipe:read "a"
  return tonumber(text:match "exit (%d+)%s*$"), text
end

-- "good", "ran" or what is wrong; and the line of the script that the error names.
local function judge(mutant, status, text)
  if status == 0 and (mutant.kind == "return_dropped" or mutant.kind == "returns_nothing")
    and text:find "warning: [%w_]+ returned" then
    return "good", mutant.line
  elseif status == 0 and text:find "warning: [^\n]* are in no optimizer" then
    return "good", mutant.line
  elseif status == 0 and text:find "warning: [^\n]*; did you mean '" then
    return "good", nil
  elseif status == 0 and text:find "warning: script%.lua:%d+:" then
    return "good", tonumber(text:match "warning: script%.lua:(%d+):")
  elseif status == 0 and text:find "%(command line; the script sets [^\n]*[x}]%)" then
    return "ran" -- the command line's number is taken in its place
  elseif status == 0 then
    return MAY_RUN[mutant.kind] and "ran" or "silent"
  end
  if status == 124 or status == 137 then return "ran into the limit" end
  if status > 127 then return "ended by a signal" end
  local line, said = text:match "script%.lua:(%d+): ([^\n]*)"
  if not line then return "no line of the script" end
  local first = text:match "ltrain: ([^\n]*)" or ""
  for message in text:gmatch "ltrain: ([^\n]*)" do
    if message:find("script.lua:", 1, true) then first = message break end
  end
  if first:match "script%.lua:%d+: .*ltrain%.[%w_.]+:%d+:" then return "a frame of ltrain" end
  return "good", tonumber(line), said
end

-- Which of n are run: `count` of them, evenly apart, from a place that the seed chooses.
local function chosen(all, count, seed)
  local list, step = {}, math.max(1, #all / count)
  for k = 0, math.min(count, #all) - 1 do
    list[#list + 1] = all[(math.floor(k * step) + seed) % #all + 1]
  end
  return list
end

-- Whether the mistake stands where the line may not come to: behind its `then` or `and`; or in
-- which argument of the command line is checked.
local function is_aside(text, mutant)
  local before = text:sub(1, mutant.at - 1):match "[^\n]*$"
  return before:find "%f[%w]then%f[%W]" or before:find "%f[%w]and%f[%W]" or before:find "arg%[$"
end

-- Of the lines that each example comes to.
local function mutants(folder)
  local all = {}
  for _, name in ipairs(EXAMPLES) do
    local text, reached = read(("%s/examples/%s.lua"):format(root, name)), {}
    write(folder .. "/script.lua", WATCH:gsub("\n", " ") .. " " .. text)
    local status, said = run(folder, name)
    assert(status == 0, said)
    for line in io.lines(folder .. "/lines") do reached[tonumber(line)] = true end
    for _, mutant in ipairs(mutate(text)) do
      mutant.example = name
      if reached[mutant.line] and not is_aside(text, mutant) then all[#all + 1] = mutant end
    end
  end
  return all
end

-- The line of `text` with the number.
local function line_of(text, number)
  local k = 0
  for line in (text .. "\n"):gmatch "(.-)\n" do
    k = k + 1
    if k == number then return line:match "^%s*(.-)%s*$" end
  end
end

-- Whether `ltrain check` names the line, or one beside it.
local function is_checked(folder, mutant)
  local _, text = run(folder, mutant.example, "check")
  for line in text:gmatch "script%.lua:(%d+): %a+:" do
    if math.abs(line - mutant.line) <= 1 then return true end
  end
  return false
end

local function show(mutant, what, text)
  print(("\n%s: %s in %s.lua:%d\n  %s\n  %s"):format(what, mutant.kind, mutant.example,
    mutant.line, line_of(mutant.text, mutant.line), (text:sub(-400):gsub("\n", "\n  "))))
end

local function one_line(mutant)
  return ("%s in %s.lua:%d: %s"):format(mutant.kind, mutant.example, mutant.line,
    line_of(mutant.text, mutant.line))
end

-- Runs one and counts it in n; `far` and `others` get a line of what is at another line or runs.
local function try(folder, mutant, n, far, others)
  write(folder .. "/script.lua", mutant.text)
  local status, text = run(folder, mutant.example)
  local what, line, said = judge(mutant, status, text)
  if (what == "silent" or what == "ran") and is_checked(folder, mutant) then what = "checked" end
  n[n[what] and what or "bad"] = n[n[what] and what or "bad"] + 1
  if line == mutant.line then
    n.near = n.near + 1
  elseif what == "good" and line then
    far[#far + 1] = ("%s\n    %d: %s"):format(one_line(mutant), line, said or "a warning")
  elseif what == "ran" then
    others[#others + 1] = one_line(mutant)
  end
  if not n[what] then show(mutant, what, text) end
end

local function main(count, seed)
  io.stdout:setvbuf "line"
  local folder <const> = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
  local n = { good = 0, near = 0, ran = 0, checked = 0, bad = 0 }
  local list, far, others = chosen(mutants(folder), count, seed), {}, {}
  for _, mutant in ipairs(list) do try(folder, mutant, n, far, others) end
  os.execute("rm -rf " .. folder)
  if #far > 0 then print("\nat another line:\n  " .. table.concat(far, "\n  ")) end
  if #others > 0 then print("\nother programs:\n  " .. table.concat(others, "\n  ")) end
  print(("\n%d mistakes: %d errors or warnings (%d at the line of the mistake), %d more named by "
    .. "ltrain check, %d other programs, %d bad"):format(#list, n.good, n.near, n.checked, n.ran,
    n.bad))
  return n.bad == 0
end

os.exit(main(tonumber(arg[1] or 300), tonumber(arg[2] or 0)))
