// Alibaba Cloud IDaaS EIAM, the newer of its two. From the vendor's documentation and API types; not tried live.
// The browser's endpoints are on another host than the others. There is no offline_access: the refresh is a tick in the console.
import type { Preset } from '../preset.ts'
import { oidc } from './oidc.ts'

// An address of which it says nothing is one of the organisation's directory.

export const aliyunEiam: Preset = {
  ...oidc,
  name: '阿里云 IDaaS',
  variables: {
    auth_url: { sentence: 'The API endpoint of the region.', default: 'https://eiam-api-cn-hangzhou.aliyuncs.com' },
    instance: { sentence: 'The instance id, idaas_….' },
    app: { sentence: 'The application id, app_….' },
  },
  issuer: '{auth_url}/v2/{instance}/{app}/oidc',
  scope: 'openid profile email phone',
  emailVerified: { email_verified: [true, null] },
}
