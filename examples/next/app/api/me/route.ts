// An API for programs: those that are not signed in get 401 from the proxy.
import { auth } from '@/menshen'

export async function GET(): Promise<Response> {
  const user = await auth()
  return user ? Response.json(user) : new Response(null, { status: 401 })
}
