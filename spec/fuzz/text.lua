-- spec/fuzz/text.lua: damaged tokenizers, tokenizer.json and older files, and damaged texts.
--
--   LT_SANITIZE=address,undefined ./dev fuzz text [RUNS] [SEED]
--
-- Files begin as those of spec/text/recorded. They are cut, and bytes of them changed, taken out,
-- doubled or replaced by words that mean something. What is read still encodes damaged texts, and
-- decodes ids that it gave and ids that are drawn. A run ends well when nothing crashes, none takes
-- over ten seconds, and all that is refused is refused by a sentence.
local c = require "ltrain.c"
local lt = require "ltrain"

local RUNS <const>, SEED <const> = tonumber(arg[1] or 20000), tonumber(arg[2] or 1)
local random <const>, clock <const> = math.random, os.clock -- the time of the processor
local RECORDED <const> = "spec/text/recorded/"

-- In memory where there is such a folder: a disk takes longer than all that is read from it.
local NAME <const> = ("/ltrain_fuzz.%d/"):format(random(1 << 40))
local FOLDER <const> = (c.io.make_folder("/dev/shm" .. NAME) and "/dev/shm" or "/tmp") .. NAME
assert(c.io.make_folder(FOLDER))

local function read(from)
  local file <close> = assert(io.open(from, "rb"))
  return file:read "a"
end

local function write(name, text)
  local file <close> = assert(io.open(FOLDER .. name, "wb"))
  file:write(text)
end

-- The recorded tokenizer.json, and the vocabularies of two of them as older files have them.
local SEEDS <const>, TEXTS <const> = {}, {}
for _, name in ipairs { "bert_cased", "bert_uncased", "characters", "gpt2", "llama3", "odd" } do
  SEEDS[#SEEDS + 1] = read(RECORDED .. name .. ".json")
  for _, case in ipairs(assert(lt.json.read(RECORDED .. name .. "_cases.json"))) do
    TEXTS[#TEXTS + 1] = case.text
  end
end
local BERT <const> = {}
for token, id in pairs(lt.text.Tokenizer(SEEDS[2]):get_vocab()) do BERT[id + 1] = token end
local VOCAB <const> = table.concat(BERT, "\n") .. "\n"
local GPT2 <const>, MERGES <const> = lt.json.decode(SEEDS[4]).model, {}
for k, merge in ipairs(GPT2.merges) do MERGES[k] = table.concat(merge, " ") end
local VOCAB_JSON <const> = lt.json.encode(GPT2.vocab)
local MERGES_TXT <const> = "#version: 0.2\n" .. table.concat(MERGES, "\n") .. "\n"

local WORDS <const> = {
  "[", "]", "{", "}", "\"", ",", ":", "null", "true", "-1", "1e999", "4294967296", "\\u0000",
  "\\ud800", "\\", "\xff", "\xcc\x81", '"BPE"', '"WordPiece"', '"WordLevel"', '"Unigram"',
  '"Sequence"', '"ByteLevel"', '"Split"', '"NFC"', '"Lowercase"', '"BertNormalizer"', "[UNK]", "##",
  "(", ")", "(?!", "[^", "\\\\p{L}", "*", "+", "{1,9}", "|",
}
local UNICODE <const> = { "\0", "\xff", "\xc0\x80", "\xed\xa0\x80", "\xf0\x9f\x98", "e\xcc\x81",
  "\u{3000}", "\u{200d}", "\u{ac00}", "\u{1100}\u{1161}", "\u{130}", "\u{fb01}", "\u{10ffff}",
  "[CLS]", "<|endoftext|>", "\r\n", "  \n ", "'ll", "\u{4e00}" }

local function change(s, words)
  if #s == 0 then return words[random(#words)] end
  local at <const>, how <const> = random(1, #s), random(10)
  if how <= 2 then return s:sub(1, at - 1) .. string.char(random(0, 255)) .. s:sub(at + 1) end
  if how <= 3 then
    return s:sub(1, at - 1) .. string.char(s:byte(at) ~ 1 << random(0, 7)) .. s:sub(at + 1)
  end
  local word <const> = words[random(#words)]
  if how <= 5 then return s:sub(1, at - 1) .. word .. s:sub(at + #word) end
  if how <= 7 then return s:sub(1, at - 1) .. word .. s:sub(at) end
  if how == 8 then return s:sub(1, at - 1) .. s:sub(at + random(1, 9)) end
  if how == 9 then return s:sub(1, at) .. s:sub(at, at + random(0, 30)) .. s:sub(at + 1) end
  return random(3) == 1 and s:sub(1, at) or s
end

local function damaged(text, words)
  for _ = 1, ({ 0, 1, 1, 1, 2, 5 })[random(6)] do text = change(text, words) end
  return text
end

-- Values that a tokenizer.json may have somewhere.
local VALUES <const> = {
  "null", "true", "false", "0", "-1", "1", "2.5", "9007199254740993", "[]", "{}", '""', '"##"',
  '"[UNK]"', '"\\u0000"', '"BPE"', '"WordPiece"', '"WordLevel"', '"Sequence"', '"Whitespace"',
  '"ByteLevel"', '"Split"', '"Digits"', '"Punctuation"', '"BertPreTokenizer"', '"NFC"', '"NFKD"',
  '"Lowercase"', '"StripAccents"', '"Replace"', '"BertNormalizer"', '"TemplateProcessing"',
  '"WordPiece"', '"Isolated"', '"Removed"', '"MergedWithPrevious"', '"Contiguous"', '"always"',
  '{"type":"NFD"}', '{"type":"WhitespaceSplit"}', '{"type":"ByteLevel"}', '" "',
  '{"Regex":"(a|b)*\\\\s+"}',
  '{"Regex":"[^\\\\r\\\\n\\\\p{L}]?\\\\p{Lu}{1,3}(?!x)"}', '{"Regex":"(("}', '{"String":""}',
}

-- The file with one value, as text without braces, made another one.
local function exchange(text)
  local first, last = text:find('[:%[]%s*"[^"\\]*"', random(#text))
  if random(3) == 1 then first, last = text:find("[:%[]%s*[%w%-.]+", random(#text)) end
  if not first then return text end
  return text:sub(1, first) .. VALUES[random(#VALUES)] .. text:sub(last + 1)
end

-- Damages what stands before a vocabulary, which says how a tokenizer works: a vocabulary is most
-- of such a file.
local function damaged_head(text)
  local from = text:find('"vocab"', 1, true) or #text
  local head = text:sub(1, from - 1)
  if random(4) == 1 then return damaged(head, WORDS) .. text:sub(from) end
  for _ = 1, random(3) do head = exchange(head) end
  return head .. text:sub(from)
end

-- { the file that is read, writes it and what is beside it, how many of ten runs }
local FORMATS <const> = {
  { "tokenizer.json", function(name)
    write(name, (random(3) > 1 and damaged_head or damaged)(SEEDS[random(#SEEDS)], WORDS))
  end, 6 },
  { "vocab.txt", function(name) write(name, damaged(VOCAB, UNICODE)) end, 2 },
  { "vocab.json", function(name)
    write(name, damaged(VOCAB_JSON, WORDS))
    write("merges.txt", damaged(MERGES_TXT, UNICODE))
  end, 2 },
}

local function draw()
  local at = random(10)
  for _, format in ipairs(FORMATS) do
    at = at - format[3]
    if at <= 0 then return format end
  end
end

-- A fault that is reported: a sentence, with where it is or what it is of.
local function check_refused(message, what)
  assert(type(message) == "string" and message:find ": ", what .. ": " .. tostring(message))
  assert(not message:find "attempt to", message)
end

-- Encodes and decodes damaged texts; refusing is fine. Returns how many were encoded.
local function work(tokenizer, run)
  local done = 0
  for _ = 1, 3 do
    local text = damaged(TEXTS[random(#TEXTS)], UNICODE)
    local ok, ids = pcall(tokenizer.encode, tokenizer, text,
      { add_special_tokens = random(2) == 1 })
    if ok then
      done = done + 1
      ids = ids:tolist()
      for _ = 1, random(0, 3) do ids[#ids + 1] = random(0, tokenizer.vocab_size) end
      local skip = { skip_special_tokens = random(2) == 1 }
      local decoded, whole = pcall(tokenizer.decode, tokenizer, ids, skip)
      if decoded then assert(type(whole) == "string") else check_refused(whole, "decode") end
    else
      check_refused(ids, ("run %d: encode"):format(run))
    end
  end
  return done
end

lt.seed(SEED)
local counts, encoded = {}, 0
for run = 1, RUNS do
  local format <const>, start <const> = draw(), clock()
  local name <const> = format[1]
  format[2](name)
  local tokenizer, why = lt.text.tokenizer(FOLDER .. name)
  if tokenizer then
    counts[name] = (counts[name] or 0) + 1
    encoded = encoded + work(tokenizer, run)
  else
    check_refused(why, ("run %d: %s"):format(run, name))
    assert(why:find(FOLDER .. name, 1, true), why)
  end
  assert(clock() - start < 10, ("run %d took %g s"):format(run, clock() - start))
end
for _, name in ipairs { "tokenizer.json", "vocab.txt", "vocab.json", "merges.txt" } do
  os.remove(FOLDER .. name)
end
os.remove(FOLDER)
print(("%d runs from seed %d: read %d tokenizer.json, %d vocab.txt, %d vocab.json; %d texts")
  :format(RUNS, SEED, counts["tokenizer.json"] or 0, counts["vocab.txt"] or 0,
    counts["vocab.json"] or 0, encoded))
