-- spec/examples/ranks_spec.lua: every example on forked ranks and under mpirun, as its reader would
-- start it: with no seed and no other option that helps. Every day every third example, by one of
-- the two; examples_spec.lua has each on one rank, and those of ranks on two.
-- tags: sampled, slow, unsanitized
local child = require "spec.cli.child"
local examples = require "spec.examples.on_ranks"
local over = require "spec.dist.over"
local sample = require "spec.sample"

local ltrain <const> = os.getenv("LTRAIN") or "ltrain"
local AS_ROOT <const> = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
local SANITIZED <const> = (os.getenv("LT_SANITIZE") or "") ~= ""
local LIMIT <const> = SANITIZED and 120 or 40

local function command(way, words, ranks)
  if way == "mpi" then
    return ("%s%smpirun -q --oversubscribe -n %d '%s' %s"):format(AS_ROOT,
      SANITIZED and "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 " or "", ranks, ltrain, words)
  end
  local devices = words:find "^run " and (" --devices %d"):format(ranks) or ""
  return ("'%s' %s%s"):format(ltrain, words, devices)
end

local function name_of(example) return example[1]:match "examples/([%w_.]+)" end

describe("on ranks", function()
  local folder
  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  -- Runs an example; returns what it printed.
  local function run(way, example)
    local words, ranks = table.unpack(example)
    local pipe <close> = assert(io.popen(("cd '%s' && timeout -k 1 %d env %s 2>&1; echo \"exit "
      .. "$?\""):format(folder, LIMIT, command(way, words, ranks))))
    local text = pipe:read "a"
    assert.equal("0", text:match "exit (%d+)\n$", text)
    return text
  end

  for _, example in ipairs(sample(examples, 3)) do
    local _, _, printed, times = table.unpack(example)
    local name = name_of(example)
    over({ "shm", "mpi" }, name, function(way)
      if example.after then run(way, examples[example.after]) end
      local text = run(way, example)
      local _, found = text:gsub(printed, "")
      -- What knows nothing of ranks is one process where nobody starts more.
      assert.equal(way == "shm" and 1 or times, found, text)
    end)
  end

  it("all of examples/ are run", function()
    local root, listed = os.getenv "LT_ROOT" or ".", {}
    for _, example in ipairs(examples) do listed[name_of(example)] = true end
    local pipe <close> = assert(io.popen(("cd '%s/examples' && ls *.lua"):format(root)))
    for name in pipe:lines() do assert.is_true(listed[name], name) end
  end)
end)
