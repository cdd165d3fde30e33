-- tools/generate_docs.lua: writes the generated pages of docs/reference, and the manual page, each
-- from its one source.
--
--   ltrain tools/generate_docs.lua docs          (./dev docs does this)
--
-- Pages come from lt.ops(), from the tables that the library itself reads (hooks, options, words of
-- the command line) and from the `---` comments of public files, so that none of it is written
-- twice. spec/docs/freshness_spec.lua makes them again and compares byte for byte.

local root = debug.getinfo(1, "S").source:match("^@(.-)tools/[^/]*$")
package.path = root .. "tools/docs/?.lua;" .. package.path

local MAKERS <const> = { "ops_page", "module_pages", "room_pages", "dist_page",
  "list_pages", "header_page", "man_page" }

-- The list of all pages, the written ones too.
local function index(list)
  local lines = {
    "# Reference", "",
    "How to do things stands in the [guide](../guide/README.md); these pages say what there is.",
    "",
  }
  for _, page in ipairs(list) do
    if not page.unlisted then
      lines[#lines + 1] = ("- [%s](%s): %s"):format(page.title, page.file, page.about)
    end
  end
  lines[#lines + 1] = ""
  lines[#lines + 1] = "All but the page of tensors are made by `./dev docs`, each from the source "
    .. "that it names."
  return { file = "README.md", source = "the pages beside it", text = table.concat(lines, "\n") }
end

local function marked(page)
  local by = ("Made by tools/generate_docs.lua from %s: change that, then run ./dev docs.")
    :format(page.source)
  if page.mark then return page.mark:format(by) .. "\n" .. page.text .. "\n" end
  return ("<!-- %s -->\n\n"):format(by) .. page.text .. "\n"
end

-- Every generated page: { file =, title =, about =, source =, text = }.
local function all_pages()
  local list = {
    { file = "tensor.md", title = "Tensors", about = "making them, properties, methods that are "
      .. "no operations", written = true },
  }
  for _, name in ipairs(MAKERS) do
    for _, page in ipairs(require(name)(root)) do list[#list + 1] = page end
  end
  local out = { index(list) }
  for _, page in ipairs(list) do
    if not page.written then out[#out + 1] = page end
  end
  return out
end

local folder = ...
if not folder then
  io.stderr:write("usage: ltrain tools/generate_docs.lua DOCS_FOLDER\n")
  os.exit(2)
end
local names = {}
for i, page in ipairs(all_pages()) do
  local path = ("%s/reference/%s"):format(folder, page.file)
  local file <close> = assert(io.open(path, "wb"))
  assert(file:write(marked(page)))
  names[i] = page.file
end
return names
