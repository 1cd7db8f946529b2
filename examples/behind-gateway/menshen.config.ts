import { defineConfig } from 'menshen'

export default defineConfig({
  rules: [
    { path: '/status', public: true },
    { path: '/reports', roles: ['developer'] },
  ],
})
