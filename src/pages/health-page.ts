// The console's page of what the doctor has found.
import { html } from 'hono/html'
import type { Finding } from '../observe/doctor/finding.ts'
import { OWN_PATHS } from '../own-paths.ts'
import { headRow } from './console-page.ts'
import { page } from './layout.ts'

const WORDS = { good: '正常', warning: '注意', failure: '故障' } as const
/** What needs attention stands first. */
const ORDER = ['failure', 'warning', 'good'] as const

export function healthPage(appName: string, findings: readonly Finding[]): string {
  const sorted = ORDER.flatMap(level => findings.filter(finding => finding.level === level))
  return page({
    appName,
    title: '健康检查',
    style: 'console.css',
    wide: true,
    body: html`
<h1>健康检查</h1>
<nav><a href="${OWN_PATHS.console}">控制台</a> <a href="/">返回首页</a></nav>
<p class="lead">${summary(findings)}</p>
<table role="table" aria-label="检查结果">
${headRow(['检查项', '结果', '看到的情况', '处理办法'])}
<tbody role="rowgroup">${sorted.map(row)}</tbody>
</table>
<p class="hint">在终端运行 <code>menshen doctor</code> 可以看到同样的结果，<code>menshen doctor --sign-in</code> 可以试登录。</p>`,
  })
}

function row({ name, level, seen, remedy }: Finding) {
  return html`<tr role="row">
<th scope="row" role="rowheader"><code>${name}</code></th>
<td role="cell"><span class="tag ${level}">${WORDS[level]}</span></td>
<td role="cell" lang="en">${seen}</td>
<td role="cell" lang="en">${remedy}</td>
</tr>`
}

function summary(findings: readonly Finding[]): string {
  const count = (level: Finding['level']) => findings.filter(finding => finding.level === level).length
  if (count('failure') > 0) return `发现 ${count('failure')} 个故障、${count('warning')} 个需要注意的地方。`
  return count('warning') > 0 ? `没有故障，有 ${count('warning')} 个需要注意的地方。` : '一切正常。'
}
