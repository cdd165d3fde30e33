--- stdlib/core/secrets.lua: keeps passwords and keys out of the files of a run.
--
-- What counts is the name: `--api_key`, `HF_TOKEN=`, {password =}. Names that only look alike
-- (bos_token, cache_key, max_tokens) are left alone: a token or a key counts by the word before it.
local secrets = {}

local REDACTED <const> = "[redacted]"

local function set_of(words)
  local set = {}
  for word in words:gmatch "%S+" do set[word] = true end
  return set
end

local ALWAYS <const> = set_of("password passwd passphrase pwd secret secrets credential "
  .. "credentials apikey bearer authorization")
local OF <const> = {
  token = set_of("access api auth bearer bot gh github gitlab hf hub huggingface id login refresh "
    .. "secret security session user wandb"),
  key = set_of("access account api auth aws encryption master openai private secret signing ssh "
    .. "wandb"),
}

--- Whether a name is that of something secret.
function secrets.is_name(name)
  local before
  for word in name:gsub("(%l)(%u)", "%1_%2"):lower():gmatch "[%w]+" do
    if ALWAYS[word] or OF[word] and before and OF[word][before] then return true end
    before = word
  end
  return before ~= nil and name:lower():gsub("^%-+", "") == "token"
end

-- The password of an address, "https://name:password@host".
local function without_password(text)
  return (text:gsub("(%w://[^/@%s:]*:)[^/@%s]+@", "%1" .. REDACTED .. "@"))
end

--- The words of a command with other values in place of secret ones.
function secrets.command(words)
  local list, follows = {}, false
  for i, word in ipairs(words) do
    local name, value = word:match "^([%w%-_%.]+)=(.*)$"
    local is_flag = word:sub(1, 1) == "-"
    if name and secrets.is_name(name) and value ~= "" then
      word = name .. "=" .. REDACTED
    elseif follows and not is_flag then
      word = REDACTED
    end
    follows = is_flag and not name and secrets.is_name(word)
    list[i] = without_password(word)
  end
  return list
end

--- The same of a table of values by name, and of the tables in it.
function secrets.values(values)
  local kept = {}
  for name, value in next, values do
    local is_secret = type(name) == "string" and secrets.is_name(name) and value ~= ""
    if type(value) == "table" and getmetatable(value) == nil then
      kept[name] = is_secret and REDACTED or secrets.values(value)
    elseif is_secret and type(value) ~= "boolean" then
      kept[name] = REDACTED
    else
      kept[name] = type(value) == "string" and without_password(value) or value
    end
  end
  return kept
end

return secrets
