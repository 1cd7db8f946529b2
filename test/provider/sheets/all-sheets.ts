// Every sheet by the name of its preset.
import type { Sheet } from '../sheet.ts'
import { CLOUD_SHEETS } from './cloud-sheets.ts'
import { ENTERPRISE_SHEETS } from './enterprise-sheets.ts'
import { OAUTH2_SHEETS } from './oauth2-sheets.ts'
import { OIDC_SHEETS } from './oidc-sheets.ts'
import { PLATFORM_SHEETS } from './platform-sheets.ts'

export const SHEETS: Readonly<Record<string, Sheet>> = {
  ...OIDC_SHEETS,
  ...CLOUD_SHEETS,
  ...OAUTH2_SHEETS,
  ...ENTERPRISE_SHEETS,
  ...PLATFORM_SHEETS,
}
