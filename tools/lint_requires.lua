-- tools/lint_requires.lua: which room of stdlib/ requires which, and that no files go in a circle.
--
-- Part of tools/lint_tree.lua. A room is a folder, with the folders in it. A require within a
-- function counts like one at the top: it only hides from readers what the file rests on. A name
-- put together (`require("ltrain.strategies." .. name)`) counts for the room it begins with.

-- The direct arrows; what they imply is derived. `init` is stdlib/init.lua, which scripts require.
local ARROWS <const> = {
  core = {},
  autograd = { "core" }, files = { "core" }, dist = { "core" },
  callbacks = { "optim" }, loggers = { "core" }, clusters = { "core" },
  distributions = { "linalg" },
  fft = { "core" }, image = { "core" }, boxes = { "core" }, transforms = { "distributions" },
  linalg = { "autograd", "core" }, ops = { "linalg" }, signal = { "fft" },
  special = { "ops" },
  nn = { "autograd", "dist", "files", "ops" },
  data = { "nn", "transforms" }, metrics = { "dist" }, optim = { "nn" },
  parallel = { "nn" },
  models = { "parallel" }, onnx = { "nn" }, text = { "data" },
  compat = { "files" }, strategies = { "compat", "optim", "parallel" },
  profiler = { "core" }, runs = { "files", "loggers" },
  trainer = { "callbacks", "clusters", "data", "metrics", "optim", "profiler", "runs",
              "strategies" },
  elastic = { "core" },
  cli = { "elastic", "trainer", "init" },

  -- The apps, without which the library and `ltrain run` are whole (LT_APPS=OFF).
  ["apps/views"] = { "runs" },
  ["apps/prompt"] = { "cli" },
  ["apps/debugger"] = { "apps/prompt" },
  ["apps/check"] = { "apps/debugger" },
  ["apps/dashboard"] = { "cli" },
  ["apps/runs"] = { "apps/views", "cli" },
  ["apps/sweep"] = { "apps/dashboard" },
  apps = { "apps/check", "apps/runs", "apps/sweep", "image", "text" },

  init = { "core" },
}

-- Files that require what somebody else names: each name of the library is found by them.
-- cli/apps.lua requires the apps, where the build has them.
local BY_NAME <const> = { ["stdlib/cli/apps.lua"] = true,
                          ["stdlib/core/catalogue.lua"] = true,
                          ["stdlib/core/load_export.lua"] = true }

-- The room that a path below stdlib/ is in.
local function room_of(path)
  local app = path:match "^apps/([%w_]+)"
  return app and ARROWS["apps/" .. app] and "apps/" .. app or path:match "^([%w_]+)/" or path
end

-- Everything a room may require: itself, and what its arrows reach.
local function reach(room, seen)
  seen = seen or {}
  if not seen[room] then
    seen[room] = true
    for _, below in ipairs(ARROWS[room]) do reach(below, seen) end
  end
  return seen
end

local function lines_of(path)
  local file <close> = assert(io.open(path, "rb"))
  return (file:read("a") .. "\n"):gmatch("(.-)\n")
end

-- fn(number, name, is_part) for each require of a file; name: nil where no text stands there.
local function each_require(path, fn)
  local number = 0
  for line in lines_of(path) do
    number = number + 1
    local code = line:gsub("^%s*%-%-.*", ""):gsub("%s%-%-%s.*", "")
    for rest in code:gmatch "%f[%w_]require%f[^%w_](.*)" do
      local name, after = rest:match '^%s*%(?%s*"([^"]*)"(.*)'
      if name or rest:find "^%s*%(" then
        fn(number, name, name and after:find "^%s*%.%." ~= nil)
      end
    end
  end
end

-- The file of stdlib/ that a name stands for; nil without one.
local function file_of(name, files)
  local path = "stdlib" .. name:gsub("^ltrain", ""):gsub("%.", "/")
  return files[path .. ".lua"] and path .. ".lua" or files[path .. "/init.lua"]
    and path .. "/init.lua" or nil
end

local function check_arrow(fail, path, number, room, target)
  if not ARROWS[target] then
    fail("%s:%d: there is no room %s", path, number, target)
  elseif not reach(room)[target] then
    fail("%s:%d: %s must not require %s", path, number, room, target)
  end
end

-- Checks the requires of a file; returns the list of files that it requires.
local function check_file(fail, path, files)
  local room, found = room_of(path:match "^stdlib/(.+)%.lua$"), {}
  if not ARROWS[room] then
    fail("%s: no such room", path)
    return found
  end
  each_require(path, function(number, name, is_part)
    if not name then
      if not BY_NAME[path] then fail("%s:%d: require what is named here", path, number) end
    elseif name:find "^ltrain" and name ~= "ltrain.c" then
      local below = name:match "^ltrain%.(.+)" or "init"
      check_arrow(fail, path, number, room, room_of((below:gsub("%.", "/"))))
      local file = not is_part and file_of(name, files)
      if file then
        found[#found + 1] = file
      elseif not is_part then
        fail("%s:%d: there is no %s", path, number, name)
      end
    end
  end)
  return found
end

-- Fails once for each circle: files that require each other, through whatever others.
local function check_circles(fail, paths, required)
  local done, way = {}, {}
  local function visit(path)
    if done[path] then return end
    if way[path] then
      local names = table.concat(way, " -> ", way[path])
      fail("%s -> %s: files require each other in a circle", names, path)
      return
    end
    way[#way + 1], way[path] = path, #way + 1
    for _, below in ipairs(required[path]) do visit(below) end
    way[#way], way[path] = nil, nil
    done[path] = true
  end
  for _, path in ipairs(paths) do visit(path) end
end

--- Checks all of stdlib/; fail(format, ...) is called for each fault.
return function(fail)
  local pipe <close> = assert(io.popen("find stdlib -name '*.lua' | sort"))
  local paths, files, required = {}, {}, {}
  for path in pipe:lines() do paths[#paths + 1], files[path] = path, true end
  for _, path in ipairs(paths) do required[path] = check_file(fail, path, files) end
  check_circles(fail, paths, required)
end
