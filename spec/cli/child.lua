-- spec/cli/child.lua: runs the binary as a child process, for specs of the command line.
local child = {}

-- The binary that runs this spec, unless ./dev test names another.
local BINARY <const> = os.getenv("LTRAIN") or arg[-1] or "ltrain"

local function quote(s)
  return "'" .. s:gsub("'", "'\\''") .. "'"
end

local function read_all(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read("a")
end

--- A new folder.
function child.folder()
  local pipe <close> = assert(io.popen("mktemp -d"))
  return pipe:read("l")
end

--- Removes such a folder.
function child.remove(folder)
  assert(folder:find("^/.+/"))
  os.execute("rm -rf " .. quote(folder))
end

--- Writes a file.
function child.write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

--- Calls fn with a new folder that has these files; it is removed after, also when fn raises.
function child.with_files(files, fn)
  local folder = child.folder()
  for name, text in pairs(files) do child.write(folder .. "/" .. name, text) end
  local ok, err = pcall(fn, folder)
  child.remove(folder)
  if not ok then error(err, 0) end
end

-- Runs a command of the shell; see child.run.
local function execute(command, options)
  local folder = child.folder()
  local env = {}
  for name, value in pairs(options.env or {}) do env[#env + 1] = name .. "=" .. quote(value) end
  child.write(folder .. "/in", options.stdin or "")
  local _, how, code = os.execute(
    ("cd %s; env --default-signal=INT %s timeout -k 1 %d %s <%s/in >%s/out 2>%s/err"):format(
      quote(options.dir or "."), table.concat(env, " "), options.seconds or 60,
      command, folder, folder, folder))
  local out, err = read_all(folder .. "/out"), read_all(folder .. "/err")
  child.remove(folder)
  return how == "signal" and 128 + code or code, out, err
end

--- Runs `ltrain` with the arguments. Options: stdin, a text; env, names and values; dir; seconds,
--- after which it is ended (60). Returns exit status, standard output, standard error. SIGINT does
--- what it does at a terminal, also when the suite runs in the background.
function child.run(arguments, options)
  local words = { quote(BINARY) }
  for i, word in ipairs(arguments) do words[i + 1] = quote(word) end
  return execute(table.concat(words, " "), options or {})
end

--- Runs a shell script in which `ltrain` is this binary; options and results as of child.run.
function child.shell(text, options)
  local folder = child.folder()
  assert(os.execute(("ln -s \"$(realpath %s)\" %s/ltrain"):format(quote(BINARY), quote(folder))))
  child.write(folder .. "/script", text)
  local code, out, err = execute(("env PATH=%s:\"$PATH\" sh -e %s"):format(quote(folder),
    quote(folder .. "/script")), options or {})
  child.remove(folder)
  return code, out, err
end

--- Runs a line of the shell on a terminal, `columns` wide; nil where there is no program `script`.
--- The status is 0; what it prints is on standard output. Other options as of child.shell.
function child.on_terminal(line, options)
  if not os.execute "command -v script >/dev/null" then return nil end
  options = options or {}
  if options.columns then line = ("stty cols %d; %s"):format(options.columns, line) end
  return child.shell(("script -qec %s /dev/null || true"):format(quote(line)), options)
end

return child
