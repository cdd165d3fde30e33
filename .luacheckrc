-- .luacheckrc: what luacheck knows of our Lua. stdlib/ sees a smaller set of globals than a script:
-- its chunks run with an environment of their own, and files, clocks and processes go through the
-- runtime.
cache = false
max_line_length = 100
std = "lua54"
ignore = { "212" } -- unused argument: hooks name what they are given

stds.stdlib = {
  read_globals = {
    "assert", "collectgarbage", "coroutine", "error", "getmetatable", "ipairs", "load", "math",
    "next", "pairs", "pcall", "print", "rawequal", "rawget", "rawlen", "rawset", "require",
    "select", "setmetatable", "string", "table", "tonumber", "tostring", "type", "utf8", "warn",
    "xpcall",
  },
}
files["stdlib"] = { std = "stdlib" }
files["spec"] = { std = "lua54+busted" }
