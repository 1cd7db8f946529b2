// What the compiler knows of the adapter for Next: roles and fields are those that the options name. Checked by tsc alone.
import { createMenshen, type Menshen, type Session } from 'menshen'
import { menshen } from 'menshen/next'

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false
const is = <_Holds extends true>() => {}

export async function named() {
  const { proxy, auth, accessToken, requireUser, requireRole, start } = menshen(
    () =>
      createMenshen({
        provider: { preset: 'oidc', fields: { employee_no: ['empNo'] } },
        roles: [{ role: 'auditor', groups: ['audit'] }],
      }),
    { address: request => request.headers.get('x-real-ip') ?? undefined },
  )
  type User = Session<'auditor' | 'common', 'employee_no'>
  is<Same<Awaited<ReturnType<typeof auth>>, User | undefined>>()
  is<Same<Awaited<ReturnType<typeof accessToken>>, string | undefined>>()
  is<Same<Awaited<ReturnType<typeof requireUser>>, User>>()
  is<Same<Awaited<ReturnType<typeof start>>, Menshen<'auditor' | 'common', 'employee_no'>>>()
  const forNext: (request: Request, event: unknown) => Promise<Response> = proxy
  const user = await requireRole('auditor', 'common')
  is<Same<typeof user, User>>()
  // @ts-expect-error: nobody can have this role
  await requireRole('auditer')
  // @ts-expect-error: which one?
  await requireRole()
  return forNext
}

// @ts-expect-error: one that runs already would run while the application is built
export const tooEarly = async () => menshen(await createMenshen())
