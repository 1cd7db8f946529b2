// What developers read in the console, in Chinese.

export const zhConsole = {
  'console.title': '控制台',
  'console.overview': '概览',
  'console.sessions': '在线用户',
  'console.health': '健康检查',
  'console.skip': '跳到正文',
  'console.language': '语言',
  'console.signed_in_as': '我的账号：{name}',
  'time.now': '刚刚',

  'health.title': '健康检查',
  'health.results': '检查项目',
  'health.check': '检查项',
  'health.result': '状态',
  'health.seen': '检查结果',
  'health.remedy': '处理办法',
  'health.good': '正常',
  'health.warning': '注意',
  'health.failure': '故障',
  'health.all_good': '一切正常。',
  'health.warnings': '没有故障，有 {warnings} 个需要注意的地方。',
  'health.failures': '发现 {failures} 个故障、{warnings} 个需要注意的地方。',
  'health.times': '最近一小时的响应时间',
  'health.waited_for': '对象',
  'health.median': '中位数（p50）',
  'health.slowest': '99 分位（p99）',
  'health.instances': '正在运行的进程',
  'health.runs_on': '本进程使用 Node {node}，存储为 {store}。共用同一存储的进程都在这里。',
  'health.instances_unknown': '存储恢复后，这里会列出正在运行的进程。',
  'health.machine': '机器',
  'health.process': '进程',
  'health.worker': '{pid}（工作进程 {worker}）',
  'health.version': '门神版本',
  'health.started': '启动时间',
  'health.this_one': '本进程',
  'health.hint': '在终端运行 {doctor} 可以看到同样的结果，{sign_in} 可以试登录。',

  'advice.weak_state_check':
    '登录状态参数只检查后缀（STATE_CHECK=suffix）：其他网站可以让访客在不知情时以他人身份登录。设置 STATE_CHECK=bound 可以防止。',
  'advice.https_without_tls':
    'BASE_URL 是 https，但本服务只提供 http，也没有信任任何代理：所有访客会被当作来自同一个地址。请用 TRUSTED_PROXIES 写明前面代理的地址，或设置 TLS_CERT_FILE 和 TLS_KEY_FILE。',
  'advice.trusts_everybody':
    'TRUSTED_PROXIES 的范围过大，包含了外部地址：任何能访问本服务的人都可以冒充任意来源地址，绕过频率限制。请只填写代理自己的地址。',
  'advice.port_of_proxy':
    '前面似乎有代理，但 BASE_URL 的端口就是本服务自己监听的端口：浏览器会绕过代理，或者打不开页面。请把 BASE_URL 设为代理的地址，并把 PORT 设为另一个端口（例如 3000）。',
  'advice.tls_without_https':
    '已设置 TLS_CERT_FILE 和 TLS_KEY_FILE，但 BASE_URL 是 http：登录后浏览器会回到打不开的地址，Cookie 也没有 Secure 标记。请把 BASE_URL 改成 https。',
  'advice.unknown_node_env':
    'NODE_ENV 不是已知的值，按生产环境处理。请设置 NODE_ENV=production 或 NODE_ENV=development。',
  'advice.console_for_nobody': '配置里的 roles 没有把 developer 角色授予任何人，没有人能看到控制台。',
  'advice.plain_http_allowed':
    '生产环境允许使用 http（ALLOW_PLAIN_HTTP=true）：令牌和 Cookie 在途中可能被读取。请改用 https。',
  'advice.unverified_email_allowed':
    '未经身份认证平台验证的邮箱也会被采用（ALLOW_UNVERIFIED_EMAIL=true）：如果用户可以在平台上随意填写邮箱，就可能冒用他人的名字。请关闭此项，或用 emailVerified 说明平台怎样确认邮箱。',
} as const
