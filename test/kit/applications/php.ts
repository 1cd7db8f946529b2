// Applications of PHP in Apache: DokuWiki, MediaWiki and WordPress.
import assert from 'node:assert/strict'
import { cpSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { readSnippets } from '../snippets.ts'
import { PHP_PACKAGES, startApache } from './apache.ts'
import { type Application, request, run, startProgram } from './application.ts'

const granted = (folder: string) => [
  `<Directory ${folder}>`,
  'Require all granted',
  'AllowOverride None',
  'AcceptPathInfo On',
  '</Directory>',
]

export const dokuwiki: Application = {
  debian: [...PHP_PACKAGES, 'dokuwiki', 'php8.2-xml', 'media-types'],

  async start(t, folder) {
    const [conf, data] = [join(folder, 'conf'), join(folder, 'data')]
    mkdirSync(conf)
    const settings = {
      title: 'Wiki',
      useacl: 0,
      savedir: data,
      userewrite: 2,
      updatecheck: 0,
      deaccent: 0,
      fetchsize: 0,
    }
    const lines = Object.entries(settings).map(([name, value]) => `$conf['${name}'] = ${JSON.stringify(value)};`)
    writeFileSync(join(conf, 'local.php'), `<?php\n${lines.join('\n')}\n`)
    writeFileSync(join(folder, 'prepend.php'), `<?php define('DOKU_CONF', '${conf}/');\n`)
    const kinds = [
      'pages',
      'attic',
      'media',
      'media_attic',
      'media_meta',
      'meta',
      'cache',
      'index',
      'locks',
      'tmp',
      'log',
    ]
    for (const kind of kinds) mkdirSync(join(data, kind), { recursive: true })
    await run(folder, ['chmod', '-R', 'a+rwX', '.'])
    return startApache(
      t,
      folder,
      ['php'],
      [
        'DocumentRoot /usr/share/dokuwiki',
        'DirectoryIndex doku.php',
        `php_admin_value auto_prepend_file ${folder}/prepend.php`,
        `php_admin_value session.save_path ${data}/tmp`,
        ...granted('/usr/share/dokuwiki'),
        // The package keeps this folder elsewhere.
        ...granted('/var/lib/dokuwiki'),
      ],
    )
  },

  async task(entrance) {
    const { name, url, page } = entrance
    const title = `团队:会议:${name}`
    await page.goto(`${url}/doku.php/${encodeURI(title)}?do=edit`)
    await page
      .locator('textarea[name=wikitext]')
      .fill(`====== 会议 ======\n六乘七是 ${6 * 7}\n\n[[:团队:计划:${name}]]`)
    await page.locator('button[name="do[save]"]').click()
    await page.getByText('六乘七是 42').waitFor()
    assert.equal(decodeURI(new URL(page.url()).pathname), `/doku.php/${title}`)
    // A link to a page with colons in its name, as the wiki writes it.
    await page.locator('a.wikilink2', { hasText: name }).click()
    await page.locator('h1, .mode_show').first().waitFor()
    assert.match(decodeURIComponent(new URL(page.url()).pathname), new RegExp(`团队:计划:${name}$`))

    await page.goto(`${url}/doku.php/${encodeURI(title)}?do=media&ns=${encodeURIComponent('团队')}&tab_files=upload`)
    const file = { name: `报告-${name}.pdf`, mimeType: 'application/pdf', buffer: Buffer.from('%PDF-1.4 报告 42') }
    await page.locator('input[type=file]').first().setInputFiles(file)
    await page.locator('#mediamanager__upload_button').click()
    await page.locator('.qq-upload-success').first().waitFor()
    const media = await request(entrance, `/lib/exe/fetch.php/${encodeURI(`团队:报告-${name}.pdf`)}`)
    assert.equal(await media.text(), '%PDF-1.4 报告 42')
  },
}

export const mediawiki: Application = {
  debian: [...PHP_PACKAGES, 'mediawiki', 'php8.2-sqlite3', 'php8.2-mbstring', 'php8.2-intl', 'media-types'],

  async start(t, folder) {
    const root = '/usr/share/mediawiki'
    await run(folder, [
      ...(['php', `${root}/maintenance/install.php`, '--dbtype=sqlite', `--dbpath=${folder}/db`] as const),
      ...['--dbname=wiki', '--scriptpath=', '--server=http://wiki.invalid', `--confpath=${folder}`, '--lang=zh-cn'],
      ...['--pass=wiki-password-42', 'Wiki', 'Admin'],
    ])
    const settings = [
      `require '${folder}/LocalSettings.php';`,
      // Both entrances are its address.
      "$wgServer = isset($_SERVER['HTTP_HOST']) ? 'http://' . $_SERVER['HTTP_HOST'] : 'http://localhost';",
      '$wgArticlePath = "/index.php/$1";',
      `$wgCacheDirectory = '${folder}/cache';`,
      '$wgMainCacheType = CACHE_NONE; $wgSessionCacheType = CACHE_DB; $wgJobRunRate = 0;',
    ]
    writeFileSync(join(folder, 'Settings.php'), `<?php\n${settings.join('\n')}\n`)
    mkdirSync(join(folder, 'cache'))
    await run(folder, ['chmod', '-R', 'a+rwX', '.'])
    return startApache(
      t,
      folder,
      ['php'],
      [
        `DocumentRoot ${root}`,
        'DirectoryIndex index.php',
        'AllowEncodedSlashes NoDecode',
        `php_admin_value session.save_path ${folder}/cache`,
        ...granted(root),
        ...granted('/var/lib/mediawiki'),
      ],
      { MW_CONFIG_FILE: join(folder, 'Settings.php') },
    )
  },

  async task({ name, url, page }) {
    const title = `Project:目标/2026//${name}; 计划?`
    await page.goto(`${url}/index.php?title=${encodeURIComponent(title)}&action=edit`)
    await page.locator('#wpTextbox1').fill(`六乘七是 ${6 * 7}`)
    await page.locator('#wpSave').click()
    // After the redirect to the page's own address.
    await page.locator('#mw-content-text', { hasText: '六乘七是 42' }).waitFor()
    assert.match(decodeURIComponent(new URL(page.url()).pathname), new RegExp(`目标/2026/+${name};_计划\\?$`))
    await page.reload()
    await page.locator('#mw-content-text', { hasText: '六乘七是 42' }).waitFor()

    await page.goto(`${url}/index.php?title=Special:UserLogin`)
    await page.locator('#wpName1').fill('Admin')
    await page.locator('#wpPassword1').fill('wiki-password-42')
    await page.locator('#wpLoginAttempt').click()
    await page.locator('#pt-logout').waitFor({ state: 'attached' })
  },
}

/** The user who signs in at the gateway: there the plugin of docs/recipes.md knows the name from a header. */
const ADMIN = { name: 'zhangsan', password: 'blog-password-42' }

export const wordpress: Application = {
  debian: [
    ...PHP_PACKAGES,
    'wordpress',
    'wordpress-theme-twentytwentyone',
    'mariadb-server-core',
    'mariadb-client-core',
    'php8.2-mysql',
    'media-types',
  ],

  async start(t, folder) {
    const [data, socket, site] = [join(folder, 'db'), join(folder, 'db.sock'), join(folder, 'site')]
    const user = process.getuid?.() === 0 ? ['--user=root'] : []
    await run(folder, ['mariadb-install-db', '--no-defaults', `--datadir=${data}`, '--skip-test-db', ...user])
    const options = ['--no-defaults', `--datadir=${data}`, `--socket=${socket}`, `--pid-file=${folder}/db.pid`]
    const memory = ['--innodb-buffer-pool-size=64M', '--skip-networking']
    const database = startProgram(t, folder, ['mariadbd', ...options, ...memory, ...user])
    const sql =
      "CREATE DATABASE blog CHARACTER SET utf8mb4; CREATE USER blog IDENTIFIED BY 'blog'; GRANT ALL ON blog.* TO blog;"
    const create = () => run(folder, ['mariadb', '--no-defaults', `--socket=${socket}`, '-e', sql])
    for (let attempt = 0; attempt < 100; attempt++) {
      const done = await create().then(
        () => true,
        () => false,
      )
      if (done || database.hasEnded()) break
      await pause(200)
    }

    cpSync('/usr/share/wordpress', site, { recursive: true, dereference: true })
    cpSync('/var/lib/wordpress/wp-content', join(site, 'wp-content'), { recursive: true, dereference: true })
    writeFileSync(
      join(site, 'wp-config.php'),
      [
        '<?php',
        "define('DB_NAME', 'blog'); define('DB_USER', 'blog'); define('DB_PASSWORD', 'blog');",
        `define('DB_HOST', 'localhost:${socket}'); define('DB_CHARSET', 'utf8mb4'); $table_prefix = 'wp_';`,
        // Both entrances are its address.
        "if (isset($_SERVER['HTTP_HOST'])) {",
        "  define('WP_HOME', 'http://' . $_SERVER['HTTP_HOST']); define('WP_SITEURL', WP_HOME);",
        '}',
        "define('DISABLE_WP_CRON', true); define('WP_HTTP_BLOCK_EXTERNAL', true); define('AUTOMATIC_UPDATER_DISABLED', true);",
        ...['AUTH', 'SECURE_AUTH', 'LOGGED_IN', 'NONCE'].flatMap(kind => [
          `define('${kind}_KEY', '${crypto.randomUUID()}');`,
          `define('${kind}_SALT', '${crypto.randomUUID()}');`,
        ]),
        "if (!defined('ABSPATH')) define('ABSPATH', __DIR__ . '/');",
        "require_once ABSPATH . 'wp-settings.php';",
      ].join('\n'),
    )
    mkdirSync(join(site, 'wp-content/mu-plugins'), { recursive: true })
    const plugin = readSnippets().find(({ page, language }) => page === 'docs/recipes.md' && language === 'php')
    writeFileSync(
      join(site, 'wp-content/mu-plugins/menshen.php'),
      plugin?.text ?? assert.fail('no plugin in the recipes'),
    )
    const install = [
      "define('WP_INSTALLING', true); $_SERVER['HTTP_HOST'] = 'localhost';",
      "require 'wp-load.php'; require 'wp-admin/includes/upgrade.php';",
      `wp_install('Blog', '${ADMIN.name}', 'admin@example.com', true, '', '${ADMIN.password}');`,
      "$wp_rewrite->set_permalink_structure('/%year%/%postname%/'); $wp_rewrite->flush_rules();",
      "switch_theme('twentytwentyone');",
    ]
    await run(site, ['php', '-r', install.join('\n')])
    await run(folder, ['chmod', '-R', 'a+rwX', 'site', 'db.sock'])
    return startApache(
      t,
      folder,
      ['php'],
      [
        `DocumentRoot ${site}`,
        'DirectoryIndex index.php',
        'FallbackResource /index.php',
        'php_admin_value upload_max_filesize 200M',
        'php_admin_value post_max_size 200M',
        ...granted(site),
      ],
    )
  },

  async task({ name, url, page }) {
    await page.goto(`${url}/wp-admin/`)
    // Without the gateway nobody sends the header, and WordPress asks for its own password.
    if (name === 'direct') {
      await page.locator('#user_login').fill(ADMIN.name)
      await page.locator('#user_pass').fill(ADMIN.password)
      await page.locator('#wp-submit').click()
    }
    await page.locator('#wpadminbar').waitFor()
    assert.ok(page.url().startsWith(`${url}/wp-admin/`), page.url())

    // A post, by the interface that its editor uses.
    const nonce = await (await page.request.get(`${url}/wp-admin/admin-ajax.php?action=rest-nonce`)).text()
    const post = await page.evaluate(
      async ({ nonce, title }) => {
        const answer = await fetch('/index.php?rest_route=/wp/v2/posts', {
          method: 'POST',
          headers: { 'content-type': 'application/json', 'x-wp-nonce': nonce },
          body: JSON.stringify({ title, content: '六乘七是 42', status: 'publish' }),
        })
        return (await answer.json()) as { link: string; message?: string }
      },
      { nonce, title: `季度总结 ${name}` },
    )
    assert.ok(post.link?.startsWith(url), JSON.stringify(post).slice(0, 300))
    await page.goto(post.link)
    await page.getByText('六乘七是 42').first().waitFor()
    assert.match(decodeURI(new URL(page.url()).pathname), /季度总结/)

    // A comment: a form that answers with a redirect.
    await page.locator('#comment').fill(`评论 ${name}`)
    await page.locator('#commentform input[type=submit], #submit').first().click()
    await page.getByText(`评论 ${name}`).first().waitFor()

    // An upload, by a form of many megabytes.
    await page.goto(`${url}/wp-admin/media-new.php?browser-uploader`)
    const buffer = Buffer.concat([Buffer.from('%PDF-1.4\n'), Buffer.alloc(20_000_000)])
    await page.locator('#async-upload').setInputFiles({ name: `报告 ${name}.pdf`, mimeType: 'application/pdf', buffer })
    await page.locator('#html-upload').click()
    await page.waitForURL(`${url}/wp-admin/upload.php*`)
    await page.goto(`${url}/wp-admin/upload.php?mode=list`)
    await page
      .getByText(new RegExp(`报告[ -]${name}`))
      .first()
      .waitFor()
  },
}
