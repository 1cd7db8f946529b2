// A public page, which greets the user if one is signed in.
import { auth } from '@/menshen'

export default async function About() {
  const user = await auth()
  return <h1>关于：{user?.userInfo.username ?? '访客'}</h1>
}
