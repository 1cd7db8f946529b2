-- Next to menshen.lua: removes headers that only Menshen and HAProxy may set, for `http-request lua.menshen_headers` in
-- haproxy.cfg. A name that ends with * is a prefix. If your application trusts another header, add it.

local CLAIMS = {
  -- The claims that the gateway drops, from its own list: begin
  -- The method: the application would perform another one than the rules checked.
  'x-http-method*', 'x-method*', 'http-method*', 'method-override', 'real-method',
  -- The path or the URL: the application would serve a page that the rules did not check.
  'x-original*', 'x-rewrite*', 'x-override-*', 'x-request-uri', 'x-request-url', 'x-path-info', 'x-script-name',
  'request-uri', 'base-url', 'uri', 'url', 'script-name', 'path-info', 'x-waws-unencoded-url',
  'x-ms-original-url',
  -- The path, in internal headers of frameworks (Next.js routing, X-Sendfile of Rack).
  'x-middleware-*', 'x-invoke-*', 'x-matched-path', 'x-now-route-matches', 'x-accel-*', 'x-sendfile*',
  -- The host: links in password e-mails would lead to another site, and caches would store such pages.
  'x-host*', 'x-http-*', 'x-backend-host', 'disguised-host', 'was-default-hostname', 'x-server-name',
  -- The proxy for the application’s own calls (httpoxy), and headers of particular proxies.
  'proxy', 'proxy-*', 'x-proxy*', 'x-proxied-*', 'x-proxiedentities*', 'wl-proxy-*', '-ws*', 'http-*',
  -- The scheme: plain http would be treated as https, or redirects would loop.
  'https', 'ssl', 'x-https', 'x-ssl', 'front-end-https', 'x-front-end-https', 'x-scheme', 'x-url-scheme',
  'url-scheme', 'cf-visitor', 'x-client-scheme', 'x-client-proto*', 'clientprotocol',
  -- What a proxy reports about the original request: address, host, scheme, path, user.
  'forwarded*', 'x-forwarded*', 'x-forward', 'x-forward-*', 'x-envoy-*', 'x-ms-proxy', 'x-ms-forwarded-*',
  -- The client address: rate limits, logs and pages for the internal network would be bypassed.
  'x-real-*', 'real-ip', 'true-*', 'x-true-*', 'client-ip', 'x-client-ip', 'x-clientip', 'x-client-addr*',
  'client-addr*', 'clientip', 'real-host', 'real-uri', 'real-url', 'real-user*', 'cluster-client-ip',
  'x-cluster-client-ip', 'x-source-ip', 'source-ip', 'x-trusted-ip', 'x-originating*',
  'x-custom-ip-authorization', 'x-coming-from', 'coming-from', 'x-ip', 'x-ip-address', 'x-client-port',
  -- The client address or country, as content delivery networks send them.
  'cf-connecting-*', 'cf-pseudo-ipv4', 'cf-ip*', 'fastly-*', 'akamai-*', 'x-akamai-*', 'cloudfront-*', 'fly-*',
  'x-vercel-*', 'x-nf-*', 'do-connecting-ip', 'x-sucuri-*', 'incap-*', 'x-azure-*', 'ali-cdn-*', 'cdn-src-ip',
  'cdn-real-ip', 'x-cdn-src-ip', 'eo-connecting-ip', 'eo-client-*',
  -- The user, as web servers and single sign-on products send it (REMOTE_USER and similar).
  'remote-*', 'x-remote*', 'x-webauth-*', 'webauth-*', 'auth-user', 'auth-type', 'logon-user', 'x-sso-*',
  'sso-*', 'iv-*', 'sm-*', 'smuser', 'oam-*', 'osso-*', 'shib-*', 'x-shib-*', 'eppn', 'persistent-id',
  'targeted-id', 'affiliation', 'unscoped-affiliation', 'entitlement', 'cas-*', 'x-cas-*', 'mellon-*', 'oidc-*',
  'x-oidc-*', 'saml-*', 'x-saml-*', 'ldap-*', 'x-ldap-*', 'x-iisnode-*', 'ms-aspnetcore-*',
  -- The user, as other forward-auth services and gateways send it.
  'x-auth-*', 'x-authenticated*', 'x-authorized-*', 'x-authentik-*', 'x-authelia-*', 'x-vouch-*',
  'x-pomerium-*', 'x-keycloak-*', 'x-token-*', 'x-consumer-*', 'x-credential-*', 'x-anonymous-consumer',
  'x-jwt-payload*', 'x-jwt-claim*', 'x-jwt-assertion', 'x-claim*', 'x-endpoint-api-userinfo',
  'x-apigateway-api-userinfo', 'x-rstudio-*', 'x-trino-*', 'x-presto-*', 'es-security-runas-user',
  'grpc-metadata-*', 'grpcgateway-*', 'x-hasura-*', 'teleport-*', 'impersonate-*', 'x-impersonate*',
  'x-scope-orgid', 'x-grafana-user', 'x-alfresco-remote-user', 'x-menshen-*',
  -- The user, as cloud load balancers and access proxies send it.
  'x-ms-client-principal*', 'x-ms-token-*', 'x-goog-authenticated-user-*', 'x-goog-iap-*', 'x-appengine-*',
  'x-cloudtasks-*', 'x-cloudscheduler*', 'x-amzn-oidc-*', 'x-amzn-mtls-*', 'cf-access-*', 'cf-worker',
  'tailscale-*', 'x-arr-*', 'x-ambassador-*', 'x-wx-*',
  -- The user, under generic names that custom gateways use.
  'x-user', 'x-user-*', 'x-username', 'x-userid', 'x-userinfo', 'x-login', 'x-login-*', 'x-logged-in-*',
  'x-principal*', 'x-subject*', 'x-identity*', 'x-email', 'x-role', 'x-roles', 'x-group', 'x-groups', 'x-admin',
  'x-is-admin', 'x-admin-user', 'x-on-behalf-of*', 'on-behalf-of*', 'x-act-as*', 'act-as*', 'php-auth-*',
  'x-rest-user*', 'x-known-user*', 'user-email', 'user-role', 'user-roles', 'user-group', 'user-groups',
  'user-login', 'user', 'user-id', 'user-key', 'user-name', 'userid', 'username', 'login-user', 'from-source',
  -- The client certificate, as a TLS-terminating proxy sends it.
  'ssl-*', 'x-ssl-*', 'tls-client-*', 'x-tls-*', 'client-cert*', 'x-client-cert*', 'x-client-dn',
  'x-client-s-dn', 'x-client-i-dn', 'x-client-verify', 'x-sap-webdisp-*',
  -- The claims that the gateway drops: end
}

-- These look similar, but scripts send them to their own applications.
local NO_CLAIMS = {
  -- Names that are no claims: begin
  'x-auth-token', 'x-auth-key', 'x-auth-csrf*', 'x-login-token', 'x-user-token', 'x-user-agent',
  'x-user-language', 'x-hasura-admin-secret', 'x-user-locale', 'x-user-timezone', 'x-user-time-zone',
  'x-middleware-prefetch', 'x-menshen-key',
  -- Names that are no claims: end
}

local function set_of(names)
  local set = {}
  for _, name in ipairs(names) do set[name] = true end
  return set
end

local claims, no_claims = set_of(CLAIMS), set_of(NO_CLAIMS)

local function is_in(set, name)
  if set[name] then return true end
  for length = 1, #name do
    if set[name:sub(1, length) .. '*'] then return true end
  end
  return false
end

core.register_action('menshen_headers', { 'http-req' }, function(txn)
  for name in pairs(txn.http:req_get_headers()) do
    if is_in(claims, name) and not is_in(no_claims, name) then txn.http:req_del_header(name) end
  end
end, 0)
