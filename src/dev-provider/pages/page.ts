// The frame of every page: a banner that nobody can mistake for a real sign-in, and the page's own content.

import { html } from 'hono/html'

export type Html = ReturnType<typeof html>

export function page(title: string, content: Html): Html {
  return html`<!doctype html>
<html lang="zh-CN">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${title} · 开发用身份提供方</title>
<link rel="icon" href="/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/style.css">
</head>
<body>
<header class="banner"><p><strong>开发用身份提供方</strong> <span>无需密码，切勿用于生产环境</span></p></header>
<main>
${content}
</main>
</body>
</html>`
}
