-- tools/run_specs.lua: runs the specs and C tests, one process a file: two at a time, and more
-- while a core is idle; those that took longest in the last run begin first
-- (tools/specs/schedule.lua).
--
--   lua5.4 tools/run_specs.lua BUILD [files...]        (from the root of the tree)
--
-- No file given: every spec/**/*_spec.lua and every program listed in BUILD/c_tests.txt; a folder
-- given: those of them that are below it. Specs that spec/devices.lua lists run once more for each
-- device of LT_TEST_DEVICES (fake: always; cuda: where BUILD has it emulated), shown as `FILE on
-- DEVICE`; LT_TEST_DEVICES=none: not at all. Those of spec/cuda run there alone, and under
-- sanitizers they are all that runs on the emulated cuda. LT_EXHAUSTIVE=1 runs the rest there too,
-- and all on it also with threads backwards, and with streams that are threads.
-- Random numbers of specs begin at LT_TEST_SEED: 1, or with LT_EXHAUSTIVE=1 a fresh one, which is
-- printed.
-- A file counts as failed when its plan is missing or does not match its results, when its exit
-- status is not 0 though all cases passed, when it ran fewer cases than it has, when it took too
-- long, or when a sanitizer wrote a report, in it or in a process that it started. The last line
-- is `N passed, N failed`; LT_TEST_TOTALS=FILE gets the same two numbers appended. What each file
-- took is in BUILD/spec_times.
--
-- Stock Lua runs this, not ltrain: a broken build must not take its own judge with it (but in the
-- bundle of `./dev package gpu`, which brings ltrain alone, and busted at LT_BUSTED). The same
-- file is also the worker, started through xargs as `run_specs.lua --one BUILD DIR FILE`.

local SLOW <const> = 0.5 -- seconds that a case may take without the tag `slow`
local EXHAUSTIVE <const> = os.getenv("LT_EXHAUSTIVE") == "1"
local SANITIZED <const> = (os.getenv("LT_SANITIZE") or "") ~= ""
local SEED <const> = os.getenv("LT_TEST_SEED") or EXHAUSTIVE and tostring(os.time()) or "1"
local RACES <const> = SANITIZED and os.getenv("LT_SANITIZE"):find("thread", 1, true) ~= nil
local LIMIT <const> = tonumber(os.getenv("LT_TEST_LIMIT"))
  or EXHAUSTIVE and 7200 or SANITIZED and 600 or 300
local BUSTED <const> = os.getenv "LT_BUSTED" or "/usr/bin/busted"

local devices = dofile "tools/specs/devices.lua"
local schedule = dofile "tools/specs/schedule.lua"
local system = dofile "tools/specs/system.lua"
local tags = dofile "tools/specs/tags.lua"
local quote <const>, read_all <const> = system.quote, system.read_all

-- Whether a file that nobody names is run.
local function is_wanted(file)
  if EXHAUSTIVE then return true end
  local set = tags.of(tags.source_of(file))
  if set.exhaustive then return false end
  if RACES then return set.threads == true end
  return not (SANITIZED and set.unsanitized)
end

-- Whether leaks are not looked for. Open MPI leaves memory behind, and has unloaded the parts that
-- took it by then, so that none can be mistaken for ours; so does XLA's backend, whose programs
-- last as long as the process. LeakSanitizer itself crashes now and then on the threads of the
-- emulated cuda's grids, which are fibers of one thread; the same specs run with it on the other
-- devices.
local function hides_leaks(source)
  return source:find "^spec/cuda/" ~= nil or source:find "^spec/xla/" ~= nil
    or tags.of(source).mpi
    or read_all(source):find "%f[%a]mpi" ~= nil -- mpirun, mpi; not compile
end

-- Seconds of the processor that the processes below a shell took: the second line of `times`.
local function processor_seconds(path)
  local sum = 0
  for minutes, seconds in (read_all(path):match "\n(.*)" or ""):gmatch "(%d+)m([%d.]+)s" do
    sum = sum + 60 * minutes + seconds
  end
  return sum
end

-- Runs `command`, which runs a source, in a folder of its own; returns its exit status (124: out of
-- time), seconds, and seconds of the processor.
local function run(source, command, dir, log)
  local vars = ("TMPDIR=%s"):format(quote(dir .. "/tmp"))
  if SANITIZED then
    local common = ("log_path=%s/report:allocator_may_return_null=1"):format(dir)
    vars = vars .. (" ASAN_OPTIONS=%s UBSAN_OPTIONS=%s LSAN_OPTIONS=%s"):format(
      quote(("%s:detect_leaks=%d"):format(common, hides_leaks(source) and 0 or 1)),
      quote(common .. ":print_stacktrace=1"),
      quote("print_suppressions=0:suppressions=" .. os.getenv("PWD") .. "/tools/lsan.supp"))
    -- A report is what fails, not the status of the process, which a spec may look at. Scripts may
    -- end by os.exit, which joins no threads.
    vars = vars .. " TSAN_OPTIONS=" .. quote(("%s:exitcode=0:atexit_sleep_ms=0:die_after_fork=0"
      .. ":report_thread_leaks=%d:suppressions=%s/tools/tsan.supp"):format(common,
      source:find "%.lua$" and 0 or 1, os.getenv "PWD"))
    if tags.of(source).kernels then vars = vars .. " EMU_RACES=1" end
  end
  local began = system.now()
  local times = dir .. "/times"
  local _, how, code = os.execute(("%s timeout -k 5 %d %s >%s 2>%s </dev/null; code=$?; times >%s; "
    .. "exit $code"):format(vars, LIMIT, command, quote(log), quote(log .. ".err"), quote(times)))
  return how == "exit" and code or 128 + code, system.now() - began, processor_seconds(times)
end

-- For specs of XLA devices the plugin that ./dev installs, and executables of runs before. An
-- everyday run has them compiled in little time, not into fast ones.
local function plugin(build, path)
  if not path:find "^spec/xla/" then return "" end
  local settings = ("LTRAIN_XLA_CACHE=%s "):format(quote(build .. (EXHAUSTIVE and "/xla-cache"
    or "/xla-cache-quick")))
  if not EXHAUSTIVE then settings = settings .. "XLA_FLAGS=--xla_backend_optimization_level=0 " end
  if os.getenv "LTRAIN_PJRT_PLUGIN" then return settings end
  local found = system.lines_of("ls " .. build .. "/venv-xla/lib/python3*/site-packages/"
    .. "lammps_jax_pjrt_cpu/*.so 2>/dev/null")[1]
  return found and settings .. "LTRAIN_PJRT_PLUGIN=" .. quote(found) .. " " or ""
end

-- Reads TAP into cases {name, ok, skip, text, took} plus the sum of the plans, and of a spec how
-- many cases ran (`# tests`), of how many.
local function read_tap(text)
  local cases, plan, tests, of = {}, nil, nil, nil
  for line in text:gmatch("[^\n]+") do
    local bad, number, name = line:match("^(n?o?t? ?)ok (%d+) ?%-? ?(.*)$")
    if number and (bad == "" or bad == "not ") then
      local bare, why = name:match("^(.-)%s*# SKIP ?(.*)$")
      if bare == "" then bare, why = why, "see the test" end -- cmocka: `not ok 3 # SKIP name`
      cases[#cases + 1] = { name = bare or name, ok = bad == "" or why ~= nil, skip = why,
                            text = "" }
    elseif line:match("^1%.%.%d+") then
      plan = (plan or 0) + tonumber(line:match("^1%.%.(%d+)"))
    elseif line:match("^# tests %d+ of %d+$") then
      tests, of = line:match("(%d+) of (%d+)")
    elseif #cases > 0 then
      local case = cases[#cases]
      local took = line:match("^# took ([%d.]+)$")
      if took then
        case.took = tonumber(took)
      else
        case.text = case.text .. line:gsub("^# ?", "  ") .. "\n"
      end
    end
  end
  return cases, plan, tests, of
end

-- What is wrong with a run as a whole: a list of sentences.
local function find_faults(o)
  local faults = {}
  local function fault(...) faults[#faults + 1] = string.format(...) end
  local failed = 0
  for _, case in ipairs(o.cases) do
    if not case.ok then failed = failed + 1 end
  end
  if o.seconds >= LIMIT then
    fault("stopped after %d s", LIMIT)
  elseif o.code > 128 then
    fault("killed by signal %d", o.code - 128)
  elseif o.code ~= 0 and failed == 0 then
    fault("exit status %d although every case passed", o.code)
  elseif o.code == 0 and failed > 0 then
    fault("exit status 0 although %d cases failed", failed)
  end
  if not o.plan then
    fault("no TAP plan: the run ended before its end")
  elseif o.plan ~= #o.cases then
    fault("TAP plan of %d, but %d results", o.plan, #o.cases)
  elseif o.plan == 0 then
    fault("no case in this file")
  end
  if o.tests ~= o.of then fault("of %s cases %s ran", o.of, o.tests) end
  for _, path in ipairs(system.lines_of("ls " .. quote(o.dir) .. "/report.* 2>/dev/null")) do
    fault("sanitizer report:\n%s", read_all(path))
  end
  return faults
end

-- The worker: runs one file, leaves DIR/notes (skipped), DIR/slow and DIR/failures, prints the row
-- `passed failed skipped seconds busy` for the file.
local function run_one(build, root_dir, file)
  local dir = root_dir .. "/" .. file:gsub("[^%w]", "_")
  os.execute("mkdir -p " .. quote(dir .. "/tmp"))
  local log = dir .. "/out"
  local o = { dir = dir }
  local path, device, variant = devices.split(file)
  local options, settings, left_out = devices.settings_for(build, path, device, variant)
  local tap
  if path:match("%.lua$") then
    local busted = "env " .. devices.sampling(path, device) .. plugin(build, path) .. settings
      .. quote(build .. "/ltrain") .. " " .. quote(BUSTED) .. options
    local command = ("%s -o tools/busted_tap.lua -Xoutput %s %s"):format(busted,
      quote(dir .. "/tap"), quote(path))
    o.code, o.seconds, o.busy = run(path, command, dir, log)
    tap = read_all(dir .. "/tap")
  else
    local command = "env CMOCKA_MESSAGE_OUTPUT=TAP " .. quote(file)
    o.code, o.seconds, o.busy = run(tags.source_of(file), command, dir, log)
    tap = read_all(log)
  end
  o.cases, o.plan, o.tests, o.of = read_tap(tap)

  local passed, failed, skipped, notes, failures, slow = 0, 0, 0, {}, {}, {}
  local is_slow = SANITIZED or EXHAUSTIVE or tags.of(tags.source_of(path)).slow
  for _, case in ipairs(o.cases) do
    if not case.ok then
      failed = failed + 1
      failures[#failures + 1] = ("not ok: %s\n%s"):format(case.name, case.text)
    elseif case.skip then
      skipped = skipped + 1
      notes[#notes + 1] = ("    skipped: %s (%s)\n"):format(case.name, case.skip)
    else
      passed = passed + 1
    end
    if not is_slow and (case.took or 0) > SLOW and not case.name:find("#slow", 1, true) then
      slow[#slow + 1] = ("%6.2f s  %s: %s\n"):format(case.took, file, case.name)
    end
  end
  for name, why in pairs(left_out) do
    skipped = skipped + 1
    notes[#notes + 1] = ("    skipped: %s (%s)\n"):format(name, why)
  end
  for _, fault in ipairs(find_faults(o)) do
    failed = failed + 1
    failures[#failures + 1] = "not ok: " .. fault .. "\n"
  end
  if failed > 0 then
    local said = (read_all(log .. ".err") .. (o.tests and read_all(log) or "")):sub(-8000)
    if said ~= "" then failures[#failures + 1] = "printed:\n" .. said end
  end
  system.write_all(dir .. "/notes", table.concat(notes))
  system.write_all(dir .. "/slow", table.concat(slow))
  system.write_all(dir .. "/failures", table.concat(failures))
  print(("%d\t%d\t%d\t%.2f\t%.2f\t%s\t%s"):format(passed, failed, skipped, o.seconds, o.busy, file,
    dir))
end

-- All files below a folder: specs, and programs of the C tests whose sources are there.
local function files_below(build, folder)
  folder = folder:gsub("^%./", ""):gsub("/+$", "")
  local files = system.lines_of(("find %s -name '*_spec.lua' | sort"):format(quote(folder)))
  for _, path in ipairs(system.lines_of("cat " .. quote(build .. "/c_tests.txt"))) do
    local below = path:match("(spec/%w+/)[^/]+$"):sub(1, #folder + 1) == folder .. "/"
    if below or folder == "." then files[#files + 1] = path end
  end
  return files
end

-- Of the files of a folder those that run without --exhaustive.
local function without_exhaustive(files)
  local list = {}
  for _, file in ipairs(files) do
    if EXHAUSTIVE or not tags.of(tags.source_of(file)).exhaustive then list[#list + 1] = file end
  end
  return list
end

-- The files to run. A C test may be named by its source; it runs the program built from it. nil and
-- a message where a name leads to none.
local function collect(build, wanted)
  local files = {}
  if #wanted == 0 then
    for _, file in ipairs(files_below(build, "spec")) do
      if is_wanted(file) then files[#files + 1] = file end
    end
    return files
  end
  for _, path in ipairs(wanted) do
    local folder, name = path:match("(%w+)/([^/]+)%.cp?p?$")
    if not system.is_there(path) then
      return nil, ("test: no such file or folder: %s"):format(path)
    end
    local found = system.is_there(path .. "/.") and without_exhaustive(files_below(build, path))
      or { name and ("%s/spec/%s/%s"):format(build, folder, name) or path }
    if #found == 0 then return nil, ("test: no spec and no C test below %s"):format(path) end
    table.move(found, 1, #found, #files + 1, files)
  end
  return files
end

-- Paths of C tests are long and of this machine: the reader knows their sources.
local function short(build, file)
  return file:find(build .. "/", 1, true) == 1 and tags.source_of(file) or file
end

-- ", 5 of them sampled", or nothing.
local function sampled_among(files)
  local n = 0
  for _, file in ipairs(EXHAUSTIVE and {} or files) do
    local path, device = devices.split(file)
    local is_sampled = tags.of(tags.source_of(path)).sampled or devices.stride_of(path, device) > 1
    if is_sampled then n = n + 1 end
  end
  return n > 0 and (", %d of them sampled"):format(n) or ""
end

local function main(build, wanted)
  local files, wrong = collect(build, wanted)
  if not files then
    io.stderr:write(wrong, "\n")
    return false
  end
  files = devices.add_runs(build, files)
  local dir, times = system.lines_of("mktemp -d")[1], schedule.read_times(build)
  schedule.sort_longest_first(files, times)
  system.write_all(dir .. "/files", table.concat(files, "\0"))
  local began, passed, failed, skipped, bad, seen, slow = system.now(), 0, 0, 0, {}, 0, {}
  local _, cores = system.idle_seconds()
  local lua = quote(arg[-1])
  local pipe = assert(io.popen(("LT_TEST_SEED=%s xargs -0 -a %s/files -r -P %d -I {} "
    .. "tools/specs/start.sh %s %s %s tools/run_specs.lua --one %s %s {}"):format(quote(SEED),
    quote(dir), 2 + 5 * cores, quote(dir), lua, lua, quote(build), quote(dir))))
  for row in pipe:lines() do
    local p, f, s, seconds, busy, file, out = row:match(
      "^(%d+)\t(%d+)\t(%d+)\t([%d.]+)\t([%d.]+)\t(.-)\t(.*)$")
    if p then
      seen, times[file] = seen + 1, tonumber(seconds)
      passed, failed, skipped = passed + p, failed + f, skipped + s
      print(("%4d passed%s%s  %6.2f s, %.2f of the processor  %s"):format(p,
        f ~= "0" and (", %d FAILED"):format(f) or "", s ~= "0" and (", %d skipped"):format(s) or "",
        seconds, busy, short(build, file)))
      io.write(read_all(out .. "/notes"))
      for line in read_all(out .. "/slow"):gmatch "[^\n]+" do slow[#slow + 1] = line end
      if f ~= "0" then bad[#bad + 1] = { file = short(build, file), out = out } end
    else
      print(row)
    end
  end
  pipe:close()
  schedule.write_times(build, times)
  for _, b in ipairs(bad) do
    print(("\n== %s"):format(b.file))
    io.write(read_all(b.out .. "/failures"))
  end
  if seen ~= #files then
    failed = failed + 1
    print(("\nnot ok: %d files to run, %d ran"):format(#files, seen))
  end
  os.execute("rm -rf " .. quote(dir))
  table.sort(slow, function(a, b) return a > b end)
  if #slow > 0 then
    print(("\n%d cases took over %g s without the tag `slow`:\n%s"):format(#slow, SLOW,
      table.concat(slow, "\n")))
  end
  local totals = os.getenv("LT_TEST_TOTALS")
  if totals then
    local file <close> = assert(io.open(totals, "a"))
    file:write(("%d %d\n"):format(passed, failed))
  end
  print(("\n%d files%s, %.0f s%s%s"):format(#files, sampled_among(files), system.now() - began,
    skipped > 0 and (", %d skipped"):format(skipped) or "",
    SEED ~= "1" and ", LT_TEST_SEED=" .. SEED or ""))
  print(("%d passed, %d failed"):format(passed, failed))
  return failed == 0 and #files > 0
end

if arg[1] == "--one" then
  run_one(arg[2], arg[3], arg[4])
elseif arg[1] == "--is-core-idle" then
  os.exit(schedule.is_core_idle())
else
  io.stdout:setvbuf("line")
  os.exit(main(arg[1], table.move(arg, 2, #arg, 1, {})), true)
end
