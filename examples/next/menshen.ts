// The only file that knows Menshen's options. In development, Menshen's own provider lets anyone in; in production, the environment
// names a real one.
import { createMenshen, readSettings } from 'menshen'
import { menshen } from 'menshen/next'

export const { proxy, auth, requireUser, requireRole } = menshen(() =>
  createMenshen({
    settings: readSettings(process.env),
    devProvider: process.env.NODE_ENV !== 'production',
    store: 'sqlite:./data/menshen.db',
    rules: [
      { path: '/about', public: true },
      { path: '/reports', roles: ['developer'] },
    ],
  }),
)
