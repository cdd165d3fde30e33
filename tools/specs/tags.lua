-- tools/specs/tags.lua: what the specs and C tests say of themselves (tools/run_specs.lua).
--
-- Tags stand in a line `tags: ...` of a file's head. With --exhaustive all files run, and all cases
-- of each.
local TAGS <const> = {
  unsanitized = "what it runs in C, others run, too: a sanitized run has it with --exhaustive",
  threads = "threads meet in it, in little time: a run under ThreadSanitizer has these",
  kernels = "races are looked for in its kernels of GPUs, too (spec/cuda/emu_races.h)",
  mpi = "its processes join a world of Open MPI, though it does not name it",
  sampled = "runs some of its cases (spec/sample.lua), others for another LT_TEST_SEED",
  half = "every second of its cases runs, others for another LT_TEST_SEED",
  third = "the same of every third",
  sixth = "the same of every sixth",
  slow = "cases of it are known to take over half a second; `#slow` in its name says it of a case",
  waits = "it waits most of its time: it begins early where nothing is known of its time",
  exhaustive = "nothing else runs it",
}

local system = dofile "tools/specs/system.lua"

local tags = {}

--- Path of the source of a file that is run: its own, or that of a C test's program.
function tags.source_of(file)
  if file:match "%.lua$" then return file end
  local path = "spec/" .. (file:match "/spec/(%w+/[^/]+)$" or file)
  return path .. (system.is_there(path .. ".c") and ".c" or ".cpp")
end

--- The set of tags of a source: {slow = true, ...}.
function tags.of(source)
  local set, head = {}, system.read_all(source):sub(1, 2000)
  assert(not head:find "\n[-/ ]+[^\n]*%w[^\n]* tags: ", source .. ": `tags:` begins no line")
  for tag in (head:match "\n%W+tags: ([%a, ]+)" or ""):gmatch "%a+" do
    set[tag] = assert(TAGS[tag] and true, source .. ": there is no tag " .. tag)
  end
  return set
end

return tags
