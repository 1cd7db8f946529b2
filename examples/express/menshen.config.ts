// In a project of your own: import { defineConfig } from 'menshen'
import { defineConfig } from '../../src/index.ts'

export default defineConfig({
  rules: [
    { path: '/status', public: true },
    { path: '/reports', roles: ['developer'] },
  ],
})
