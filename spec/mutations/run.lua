-- spec/mutations/run.lua: runs examples with one mistake each, and prints how they end.
--
--   ./dev mutations [HOW MANY] [SEED] [OPTIONS OF ltrain run, as --devices 2]
--
-- A mistake ends well in an error at a line of the script. It ends badly in a frame of ltrain's
-- own, in a signal, after the limit, or in silence: with exit status 0, though a name was misspelt,
-- a number is text, a layer nil, a return gone, or a dot a colon. Another number, another word that
-- is shown, or an argument less may be another program that is right: those are counted by
-- themselves. Lines that an example does not come to have no mistakes. What ends badly is listed,
-- and in a line each what is an error at another line than the mistake's; the last has the score.
local mutate = require "spec.mutations.mutate"

local ltrain <const> = os.getenv "LTRAIN" or "ltrain"
local root <const> = os.getenv "LT_ROOT" or "."
local LIMIT <const> = 60
local EXAMPLES <const> = { "mlp", "digits", "char_gpt", "fine_tune", "manual_loop" }
local FEW <const> = "--max_epochs 1 --limit_train_batches 2 --limit_val_batches 2 "
  .. "--limit_test_batches 2 --num_sanity_val_steps 1"
-- Kinds that may end in silence: another number is another model.
local MAY_RUN <const> = { dim_changed = true, word_misspelt = true, dtype_changed = true,
                          argument_dropped = true, arguments_swapped = true,
                          self_forgotten = true, labels_as_floats = true }
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

local function run(folder, example)
  local word, options = "run", FEW .. " " .. OPTIONS
  if example == "manual_loop" then word, options = "", "" end
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
  elseif status == 0 and text:find "%(command line; the script sets %d+x%)" then
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
-- which argument of the command line is looked at.
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

local function show(mutant, what, text)
  print(("\n%s: %s in %s.lua:%d\n  %s\n  %s"):format(what, mutant.kind, mutant.example,
    mutant.line, line_of(mutant.text, mutant.line), (text:sub(-400):gsub("\n", "\n  "))))
end

local function main(count, seed)
  local folder <const> = os.tmpname()
  os.remove(folder)
  assert(os.execute("mkdir " .. folder))
  local n = { good = 0, near = 0, ran = 0, bad = 0 }
  local list, far = chosen(mutants(folder), count, seed), {}
  for _, mutant in ipairs(list) do
    write(folder .. "/script.lua", mutant.text)
    local status, text = run(folder, mutant.example)
    local what, line, said = judge(mutant, status, text)
    n[n[what] and what or "bad"] = n[n[what] and what or "bad"] + 1
    if line == mutant.line then
      n.near = n.near + 1
    elseif what == "good" and line then
      far[#far + 1] = ("%s in %s.lua:%d: %s\n    %d: %s"):format(mutant.kind, mutant.example,
        mutant.line, line_of(mutant.text, mutant.line), line, said)
    end
    if not n[what] then show(mutant, what, text) end
  end
  os.execute("rm -rf " .. folder)
  if #far > 0 then print("\nat another line:\n  " .. table.concat(far, "\n  ")) end
  print(("\n%d mistakes: %d errors (%d at the line of the mistake), %d other programs, %d bad")
    :format(#list, n.good, n.near, n.ran, n.bad))
  return n.bad == 0
end

os.exit(main(tonumber(arg[1] or 300), tonumber(arg[2] or 0)))
