-- spec/gpu/sections/training.lua: losses of the examples against the CPU's; a fit that is saved and
-- resumed.
local section = require "spec.gpu.section"

local quote <const> = section.quote

-- Trains an example; its folder is emptied first.
local function train(example, accelerator, steps, root, options)
  local status, _, said = section.run(300, ("%s run examples/%s.lua --accelerator %s --devices 1 "
    .. "--seed 1 --limit_val_batches 0 --max_steps %d --default_root_dir %s %s"):format(
    quote(section.LTRAIN), example, accelerator, steps, quote(root), options))
  if status ~= 0 then
    section.fail("%s on %s: %s", example, accelerator, section.last_words(said))
  end
end

-- Column train_loss of the log of an example's first steps.
local function losses(example, accelerator, steps)
  local root = section.dir .. "/" .. accelerator
  os.execute("rm -rf " .. quote(root))
  train(example, accelerator, steps, root, "--log_every_n_steps 1")
  local text = section.read_all(section.line_of(("find %s -name metrics.csv | head -1"):format(
    quote(root))))
  local column, list = 0, {}
  for name in (text:match "^[^\n]*" .. ","):gmatch "([^,]*)," do
    column = column + 1
    if name == "train_loss" then break end
  end
  for line in text:gmatch "\n([^\n]+)" do
    local k = 0
    for cell in (line .. ","):gmatch "([^,]*)," do
      k = k + 1
      if k == column and tonumber(cell) then list[#list + 1] = tonumber(cell) end
    end
  end
  if #list < steps then
    section.fail("%s on %s: %d losses of %d", example, accelerator, #list, steps)
  end
  return list
end

section.add("losses", "losses of the examples against the CPU's", function()
  for _, example in ipairs(section.tiny and { "mlp" } or { "mlp", "digits", "char_gpt" }) do
    local steps = section.tiny and 2 or 50
    local here, there = losses(example, "cpu", steps), losses(example, "cuda", steps)
    local most = 0
    for k, loss in ipairs(here) do
      most = math.max(most, math.abs(loss - there[k]) / math.max(math.abs(loss), 1e-3))
    end
    section.note(example, most, "largest relative difference of a loss")
    if most ~= most or most > 0.02 then section.fail("%s: losses differ by %g", example, most) end
  end
end)

-- The weights and the optimizer's state of a checkpoint as one number.
local function checksum(path)
  local status, text, said = section.run(60, ("%s -e %s"):format(quote(section.LTRAIN), quote(([[
    local parts = {}
    for name, x in pairs(lt.load(%q)) do
      parts[#parts + 1] = name .. " " .. table.concat(x:flatten():tolist(), " ")
    end
    table.sort(parts)
    local sum = 0
    for byte in table.concat(parts, "\n"):gmatch "." do
      sum = (sum * 31 + byte:byte()) %% 2147483647
    end
    print(sum)]]):format(path))))
  if status ~= 0 then section.fail("%s: %s", path, section.last_words(said)) end
  return tonumber(text)
end

-- The checkpoint of a folder of one run.
local function last_of(folder)
  return section.line_of(("find %s -name '*.ckpt' | head -1"):format(quote(folder)))
end

section.add("saving", "a fit that is saved and resumed twice ends with the same bits", function()
  local half = section.tiny and 2 or 100
  local root <const> = section.dir .. "/saving"
  os.execute("rm -rf " .. quote(root))
  train("mlp", "cuda", half, root .. "/first", "")
  local saved <const> = last_of(root)
  if saved == "" then section.fail "no checkpoint was saved" end
  local found = {}
  for k = 1, 2 do
    local folder <const> = ("%s/resumed%d"):format(root, k)
    train("mlp", "cuda", 2 * half, folder, "--ckpt_path " .. quote(saved))
    found[k] = checksum(last_of(folder))
  end
  train("mlp", "cuda", 2 * half, root .. "/whole", "")
  found[3] = checksum(last_of(root .. "/whole"))
  if found[1] ~= found[2] or found[1] ~= found[3] then
    section.fail("checksums of the weights differ: resumed %d and %d, in one run %d", found[1],
      found[2], found[3])
  end
end)
