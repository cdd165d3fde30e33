-- tools/docs/header_page.lua: public headers: their comments as words, their declarations as code.
local markdown = require "markdown"

local DEVICE <const> = [[
How to write a device, step by step and with the commands that test it: [adding a
device](../adding.md#a-device-1-shared-object). `spec/c/ten_device.c` is a complete one, of ten
kernels. In short:

- The shared object is `ltrain_NAME.so`, in the folder that `LTRAIN_BACKENDS` names; it exports
  `lt_backend_open` alone, which fills in `lt_backend` with the version it was built for and its
  table, `lt_device_ops`. It is built against these headers, links nothing of ltrain, and calls
  ltrain through `lt_host`.
- The least that a table must have: `name`, `kernels`, `count`, `alloc`, `free`, `copy`. With
  these it is synchronous, and all operations run on the CPU, with copies. `host_memory` may be
  set in place of `copy` where the host can use the memory as it is.
- An asynchronous device has `launch`, and with it `stream_new`, `event_record`, `event_done`,
  `event_wait`, `stream_wait` and `synchronize`. It must run the work of a stream in order, after
  the events that the stream waits for; ltrain does all other ordering. If
  `event_record` fails after work was issued, ltrain calls `synchronize`.
- `kernels[op]` is called with tensors whose shapes and dtypes are right, results allocated; it
  reads them with `lt_host.view` and `lt_host.argument`. Ids of operations come from
  `lt_host.op`, since they change between versions.
- Functions with a ctx report a failure with `lt_host.fail` and return what it returns. They never
  longjmp, and keep no ctx.
- What depends on values, such as an index out of range, is recorded in the device's error word
  (`take_error`).
- `forks = false`: a forked child of a process that has used the device cannot use it, as with
  CUDA.
- For ranks: with `combine`, `divide` and `scale` a link between devices ([comm.h](comm_h.md))
  reduces in the device's memory; without them, or without a link, bytes go through the pinned
  memory of `host_alloc` and the host's link.
- A backend in ltrain's own tree that reads arguments or tensors by their structs compiles
  `runtime/ops/abi_hash.c` and gives `lt_op_hash()` as `op_hash`: it is refused when rows or layouts
  have changed. Others leave 0.]]

local PAGES <const> = {
  {
    path = "lua/host/ltrain.h", file = "ltrain_h.md", title = "ltrain.h",
    about = "ltrain inside another program",
    after = "How to build against it: [embedding](../guide/embedding.md).",
  },
  {
    path = "runtime/include/ltrain/backend.h", file = "backend_h.md", title = "ltrain/backend.h",
    about = "devices of one's own, and how backends are opened", after = DEVICE,
  },
  {
    path = "runtime/include/ltrain/comm.h", file = "comm_h.md", title = "ltrain/comm.h",
    about = "transports between ranks",
    after = "How to write one: "
      .. "[adding a comm backend](../adding.md#a-comm-backend-1-shared-object).",
  },
  {
    path = "runtime/include/ltrain/args.h", file = "args_h.md", title = "ltrain/args.h",
    about = "arguments of operations in C",
    after = "For kernels of [devices](backend_h.md).",
  },
}

-- A paragraph; lines with gaps in them are rows of a table, which stay as they are.
local function add_paragraph(parts, text)
  local kind, lines
  local function finish()
    if not lines then return end
    local joined = table.concat(lines, "\n")
    parts[#parts + 1] = kind == "table" and "```\n" .. joined .. "\n```" or joined
  end
  for line in (text .. "\n"):gmatch("(.-)\n") do
    local own = line:find("%S  +%S") and "table" or "words"
    if own ~= kind then
      finish()
      kind, lines = own, {}
    end
    lines[#lines + 1] = line:gsub("^%s+", "")
  end
  finish()
end

-- The text of a comment without its signs; lines that are set in are code.
local function words(comment)
  local body = comment:gsub("^/%*%s*", ""):gsub("%s*%*/%s*$", "")
  local parts = {}
  for part in (body .. "\n\n"):gmatch("(.-)\n\n+") do
    if part:find("^%s%s%s%s%s") then
      parts[#parts + 1] = "```c\n" .. part:gsub("^%s%s%s%s%s", ""):gsub("\n%s%s%s%s%s", "\n")
        .. "\n```"
    else
      add_paragraph(parts, part)
    end
  end
  return parts
end

local function is_noise(block)
  return block:find("^#") or block:find("^extern") or block:find("^}") or block == ""
end

local function count(line, what) return select(2, line:gsub(what, "")) end

-- Parts with blank lines between them; those within braces and comments are no ends.
local function blocks(text)
  local list, lines, depth = {}, {}, 0
  local function finish()
    local block = table.concat(lines, "\n"):gsub("^%s+", ""):gsub("%s+$", "")
    if block ~= "" then list[#list + 1] = block end
    lines = {}
  end
  for line in (text .. "\n"):gmatch("(.-)\n") do
    if line == "" and depth == 0 then finish() end
    lines[#lines + 1] = line
    if not line:find '^extern "C"' then
      local opened = count(line, "{") + count(line, "/%*")
      depth = math.max(depth + opened - count(line, "}") - count(line, "%*/"), 0)
    end
  end
  finish()
  return list
end

local function page_of(root, page)
  local file <close> = assert(io.open(root .. page.path, "rb"))
  local text = file:read("a")
  local head, rest = text:match("^(/%*.-%*/)\n(.*)$")
  local parts = { "# " .. page.title }
  for i, part in ipairs(words(head)) do
    parts[#parts + 1] = i == 1 and part:gsub("^[%w/]+%.h: ", "") or part
  end
  parts[#parts + 1] = page.after
  for _, block in ipairs(blocks(rest)) do
    block = block:gsub("/%* clang%-format %a+ %*/\n?", "")
    local comment, code = block:match("^(/%*.-%*/)\n(.*)$")
    code = code or block
    if not (is_noise(code) and not code:find("^#define LTRAIN_CONFIG")) then
      for _, part in ipairs(comment and words(comment) or {}) do parts[#parts + 1] = part end
      code = code:gsub("LT_API ", ""):gsub("\n       (%s+)", "\n%1")
      parts[#parts + 1] = "```c\n" .. code:gsub("%s+$", "") .. "\n```"
    end
  end
  return {
    file = page.file, title = page.title, about = page.about, source = page.path,
    text = markdown.join(parts),
  }
end

return function(root)
  local list = {}
  for i, page in ipairs(PAGES) do list[i] = page_of(root, page) end
  return list
end
