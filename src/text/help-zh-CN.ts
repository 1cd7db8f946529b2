// The Chinese text of `--help`. The rows of cli/commands/table.ts have the English texts, usage and examples; each has its Chinese
// text here, keyed by its name.

const TIMES = '2026-03-01T08:00:00Z、2026-03-01、30m、2h、7d'
const LANGUAGE = '输出的语言：zh-CN 或 en；默认取 LC_ALL、LC_MESSAGES 或 LANG'
const USER = '仅限该用户'
const BESIDE = '可以在门神运行时使用，设置须与其相同；不支持 STORE=memory:。'

export const helpZhCN = {
  about: '门神 Menshen：为任何 Web 应用加上登录。',
  heads: { usage: '用法：', commands: '命令：', options: '选项：', examples: '示例：', exitCodes: '退出码：' },
  command: '执行以下命令之一',
  more: 'menshen help COMMAND 查看各命令的说明。全部设置见 docs/settings.md，全部命令见 docs/commands.md。',
  start: '启动门神，设置取自环境变量、.env 和配置文件',
  global: ['显示帮助；在命令之后使用时，显示该命令的帮助', '显示版本号'],
  good: '正常',
  exitCodes: {
    0: '正常；启动后按要求停止时也是 0',
    1: '设置、查询的内容或所需资源（端口、存储、文件）有问题',
    2: '命令行有误：未知的命令或选项，缺少值或值无效',
  },
  commands: {
    check: {
      description: '检查设置和配置是否可用',
      details:
        '只读取环境变量、.env、配置文件及其中指定的文件，不打开存储、端口或连接，也不写入任何内容。列出的问题都会使启动失败；只有缺少身份认证平台的设置时仍可启动，登录页会列出缺少的设置。',
      options: { language: LANGUAGE },
      examples: ['重启之前，或在 CI 中', '检查尚未启用的配置'],
      fails: '有错误或缺少设置，每项一行，写到 stderr；只有警告时为 0',
    },
    doctor: {
      description: '逐项检查登录所需的一切，并给出处理办法',
      details: undefined,
      options: {
        json: '在 stdout 输出一个 JSON 文档',
        'sign-in': '用一次真实登录测试平台的字段映射',
        show: '与 --sign-in 一起使用：同时显示字段的值，包括令牌',
        language: LANGUAGE,
      },
      examples: ['每项检查一行：检查结果 → 处理办法', '平台返回了哪些字段，如何对应'],
      fails: '有检查失败，或登录未成功；只有警告时为 0',
    },
    rules: {
      description: '说明配置中的访问规则如何生效',
      details:
        'FILE 是 JSON 数组，每项为 { "path", "role"?, "groups"?, "user"?, "method"?, "destination"?, "depth"?, "from"?, "at"?, "authAge"?, "acr"?, "amr"?, "host"?, "expect" }。"expect" 为 "admitted"（放行）、"refused"（拒绝，403）、"login"（需要先登录）、"step_up"（需要重新登录）、"bad_request"（路径含有 . 或 .. 路径段、控制字符或编码错误）、"uri_too_long"（路径超过 4096 字节或 100 级）或 "own"（由门神自身处理）。未指定角色时，使用 `roles` 授予 NAME 和 GROUP 的角色，不考虑按 claim 授予的行。未指定地址、时间或登录时长时，networks、hours 和 maxAge 按满足处理，并在结果中说明；未指定 acr 和 amr 时视为没有。未写时区偏移的时间使用规则的时区。只读取配置文件，不读取其他设置。',
      options: {
        role: '角色：配置中的角色，或表示未登录的 visitor；默认为 `roles` 授予 NAME 和 GROUP 的角色',
        group: '用户组，可以多次使用',
        user: '用户名',
        method: '请求方法，默认为 GET',
        destination: 'COPY 和 MOVE 的 `Destination`',
        depth: 'PROPFIND、LOCK、COPY 和 REPORT 的 `Depth`：0、1 或 infinity',
        from: '客户端地址，用于 `networks`',
        at: '时间，用于 `hours`：2026-11-16T09:00 使用规则的时区，也可以写明偏移',
        'auth-age': '距登录的秒数，用于 `maxAge`',
        acr: 'id_token 的 acr；可以多次使用，符合其一即可',
        amr: 'id_token 的 amr 中的值，可以多次使用',
        host: '`hosts` 中的域名，默认为 BASE_URL 的域名',
        language: LANGUAGE,
      },
      examples: ['结果如何，依据哪条规则', '是否需要重新登录', '在 CI 中核对一组预期结果'],
      fails: '有结果与预期不符，或配置、FILE 无法使用；结果为拒绝时仍为 0',
    },
    schema: {
      description: '输出配置文件的 JSON Schema',
      details:
        '供编辑器，以及未安装门神的 CI 使用，与软件包中的 menshen.schema.json 相同。不读取任何设置、密钥或文件。',
      options: {},
      examples: ['保存为文件，供配置文件的 `$schema` 引用'],
      fails: undefined,
    },
    keys: {
      description: '为机器生成密钥，列出或撤销用户的个人密钥',
      details: `new 只显示一次密钥，并给出写入 \`machines\` 的一行，不读取或保存任何内容；配置中只有密钥的散列值，没有密钥本身。密钥在写有 \`keys\` 的规则下有效，用户名为 machine:NAME；配置了 \`api\` 的机器还可以用它调用 API。个人密钥由用户在账号页创建。list 和 revoke ${BESIDE}`,
      options: {
        user: USER,
        before: `与 revoke 一起使用：撤销在此之前创建的所有个人密钥，例如 ${TIMES}`,
        json: '与 list 一起使用：每行一个 JSON 对象',
        language: LANGUAGE,
      },
      examples: [
        '为机器 backup 生成密钥',
        'zhangsan 的个人密钥及编号，最新的在前',
        '撤销这些密钥；zhangsan 仍保持登录',
        '撤销所有更早的密钥，例如恢复旧备份之后',
      ],
      fails: '密钥不存在，设置或存储无法使用，或操作未能写入审计记录',
    },
    sessions: {
      description: '列出会话，或让用户退出登录',
      details: `${BESIDE}日志中只有会话编号的前十个字符。用户没有会话时，end --user 结束 0 个会话，退出码为 0。`,
      options: {
        user: USER,
        session: '与 end 一起使用：列表中的会话编号',
        json: '每行一个 JSON 对象',
        language: LANGUAGE,
      },
      examples: [
        '所有用户的会话，最新的在前',
        '让 zhangsan 在所有设备上退出登录，并撤销其个人密钥',
        '结束一个会话；个人密钥不受影响',
      ],
      fails: '会话不存在，设置或存储无法使用，或操作未能写入审计记录',
    },
    audit: {
      description: '输出审计记录，最早的在前',
      details: BESIDE,
      options: {
        user: USER,
        since: `仅限此后的记录，例如 ${TIMES}`,
        event: '仅限该代码的事件，例如 sign_in_failed',
        request: '仅限该请求编号的记录；请求编号见错误页',
        json: '每行一个 JSON 对象',
        language: LANGUAGE,
      },
      examples: ['zhangsan 最近两小时的操作', '昨天以来所有失败的登录'],
      fails: '设置或存储无法使用',
    },
    backup: {
      description: '把内嵌存储备份到新文件，门神运行时也可以使用',
      details:
        '备份本身就是一个存储，可以用 STORE=sqlite:FILE 打开；须使用写入它的门神的密钥（SECRET，未设置时为 CLIENT_SECRET），备份中不含密钥。仅支持 STORE=sqlite:；Redis 请使用其自带的备份方式。',
      options: { language: LANGUAGE },
      examples: ['当前时刻的一致性备份'],
      fails: '存储或文件无法使用',
    },
    help: {
      description: '显示命令的说明，与 menshen COMMAND --help 相同',
      details: undefined,
      options: {},
      examples: ['该命令的选项和示例'],
      fails: undefined,
    },
  },
} as const
