// A protected page with a server action. The proxy has admitted only signed-in users; the action asks again, because it can be called
// by any client that knows its address.
import { requireUser } from '@/menshen'

async function saveNote(form: FormData) {
  'use server'
  const { userInfo } = await requireUser()
  notes.set(userInfo.username, String(form.get('note') ?? ''))
}

/** Until the process ends: an application has a database. */
const notes = new Map<string, string>()

export default async function Home() {
  const { userInfo } = await requireUser()
  return (
    <main>
      <h1>{userInfo.nickname || userInfo.username}，您好！</h1>
      <p>备注：{notes.get(userInfo.username) ?? '无'}</p>
      <form action={saveNote}>
        <input name="note" aria-label="备注" />
        <button type="submit">保存</button>
      </form>
      <p>
        <a href="/reports">报表</a> · <a href="/about">关于</a> · <a href="/logout">退出登录</a>
      </p>
    </main>
  )
}
