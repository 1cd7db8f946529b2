// Lark, Feishu outside of China: version 2 of the token address, which takes JSON only. From the vendor's documentation; not
// tried live.
import type { Preset } from '../preset.ts'
import { feishu } from './feishu.ts'

export const lark: Preset = {
  ...feishu,
  name: 'Lark',
  variables: {
    auth_url: { sentence: 'Where users sign in.', default: 'https://accounts.larksuite.com' },
    api_url: { sentence: 'Its API.', default: 'https://open.larksuite.com' },
  },
  tokenUrl: '{api_url}/open-apis/authen/v2/oauth/token',
  tokenRequest: { as: 'json' },
}
