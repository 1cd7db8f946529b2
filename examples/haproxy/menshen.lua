-- Asks Menshen about a request, for `http-request lua.menshen ADDRESS` in haproxy.cfg: HAProxy has no built-in forward-auth.
-- If the request is admitted, txn.admitted is true, and the request has the identity headers and none of Menshen's cookies.
-- Otherwise txn.admitted is not set, and the browser gets Menshen's response. With several hosts, haproxy.cfg sets txn.host to
-- the one that the request is for.

local IDENTITY = {
  'x-forwarded-user',
  'x-forwarded-email',
  'x-forwarded-preferred-username',
  'x-forwarded-role',
  'x-forwarded-groups',
  'x-menshen-assertion',
}

-- The request headers that Menshen needs: credentials, whether a user opened a page or a script sent the request
-- (SESSION_IDLE_MINUTES), whether another site sent it or opens a WebSocket, and the other paths of a WebDAV method.
local ASKED_WITH = {
  'host', 'cookie', 'accept', 'origin', 'sec-fetch-dest', 'sec-fetch-mode', 'sec-fetch-site', 'sec-fetch-user',
  'sec-websocket-key', 'user-agent', 'x-request-id', 'authorization', 'x-menshen-key',
  'destination', 'new-uri', 'depth', 'overwrite',
}

-- No cache may store a response with one of Menshen's cookies.
local CACHE_HEADERS = {
  -- Headers for shared caches: begin
  'cdn-cache-control', 'cloudflare-cdn-cache-control', 'edge-control', 'netlify-cdn-cache-control',
  'surrogate-control', 'vercel-cdn-cache-control', 'x-accel-expires',
  -- Headers for shared caches: end
}

local DEADLINE_MS = 10000

-- HAProxy counts the lines of a header from 0.
local function lines_of(headers, name)
  local lines = {}
  for nth = 0, 1000 do
    local line = headers[name] and headers[name][nth]
    if not line then return lines end
    table.insert(lines, line)
  end
  return lines
end

local function question(txn, sent)
  local headers = {
    ['x-original-uri'] = { txn.f:pathq() },
    ['x-original-method'] = { txn.f:method() },
    ['x-forwarded-for'] = { txn.f:src() },
  }
  local host = txn:get_var('txn.host')
  if host then headers['x-original-host'] = { host } end
  for _, name in ipairs(ASKED_WITH) do
    local lines = lines_of(sent, name)
    if #lines > 0 then headers[name] = { table.concat(lines, name == 'cookie' and '; ' or ', ') } end
  end
  -- A WebSocket over HTTP/2 (RFC 8441) has no key, by which Menshen recognizes that it has to check Origin.
  if #lines_of(sent, 'upgrade') > 0 then headers['sec-websocket-key'] = headers['sec-websocket-key'] or { 'none' } end
  return headers
end

local function is_ours(cookie)
  local name = cookie:lower():gsub('^[%s=]+', ''):gsub('^__host%-', ''):gsub('^__secure%-', '')
  return name:find('^menshen_') ~= nil
end

-- The application gets all cookies except Menshen's.
local function without_ours(header)
  local kept = {}
  for cookie in header:gmatch('[^;]+') do
    local trimmed = cookie:match('^%s*(.-)%s*$')
    if trimmed ~= '' and not is_ours(trimmed) then table.insert(kept, trimmed) end
  end
  return table.concat(kept, '; ')
end

-- A Menshen key never reaches the application: neither plain in any scheme nor as the password of Basic.
local function has_key(txn, lines)
  for _, line in pairs(lines or {}) do
    local decoded = txn.c:b64dec(line:match('^%a+%s+(%S+)$') or '') or ''
    if line:find('mk_[%w_-]+') or decoded:find('mk_[%w_-]+') then return true end
  end
  return false
end

core.register_action('menshen', { 'http-req' }, function(txn, address)
  local headers = question(txn, txn.http:req_get_headers())
  local answer = core.httpclient():get({
    url = address .. '/_menshen/check',
    headers = headers,
    timeout = DEADLINE_MS,
  })
  if not answer or answer.status ~= 200 then return end

  -- Always set all six, so that a client's headers with these names never pass. Empty ones are not sent.
  for _, name in ipairs(IDENTITY) do
    local value = lines_of(answer.headers, name)[1] or ''
    txn.http:req_del_header(name)
    if value ~= '' then txn.http:req_add_header(name, value) end
  end
  local cookies = without_ours(headers.cookie and headers.cookie[1] or '')
  txn.http:req_del_header('cookie')
  if cookies ~= '' then txn.http:req_add_header('cookie', cookies) end
  txn.http:req_del_header('x-menshen-key')
  if has_key(txn, headers.authorization) then txn.http:req_del_header('authorization') end
  -- A check can refresh the session: its cookie has to reach the browser.
  local renewed = lines_of(answer.headers, 'set-cookie')[1]
  if renewed then txn:set_var('txn.menshen_cookie', renewed) end
  txn:set_var('txn.admitted', true)
end, 1)

core.register_action('menshen_answer', { 'http-req' }, function(txn)
  txn.http:req_set_header('x-forwarded-uri', txn.f:pathq())
  txn.http:req_set_header('x-forwarded-method', txn.f:method())
  -- Never a client's header.
  txn.http:req_del_header('x-forwarded-host')
  local host = txn:get_var('txn.host')
  if host then txn.http:req_add_header('x-forwarded-host', host) end
  txn.http:req_set_uri('/_menshen/forward')
end, 0)

core.register_action('menshen_cookies', { 'http-res' }, function(txn)
  local lines = lines_of(txn.http:res_get_headers(), 'set-cookie')
  txn.http:res_del_header('set-cookie')
  for _, line in ipairs(lines) do
    if not is_ours(line) then txn.http:res_add_header('set-cookie', line) end
  end
  local renewed = txn:get_var('txn.menshen_cookie')
  if not renewed then return end
  txn.http:res_add_header('set-cookie', renewed)
  for _, name in ipairs(CACHE_HEADERS) do txn.http:res_del_header(name) end
  txn.http:res_set_header('cache-control', 'no-store')
end, 0)
