// Every preset by the name that PROVIDER knows it by.

import { bamboocloud } from './oauth2/bamboocloud.ts'
import { dingtalk } from './oauth2/dingtalk.ts'
import { feishu } from './oauth2/feishu.ts'
import { gitee } from './oauth2/gitee.ts'
import { github } from './oauth2/github.ts'
import { idaas } from './oauth2/idaas.ts'
import { lark } from './oauth2/lark.ts'
import { maxkey } from './oauth2/maxkey.ts'
import { oauth2 } from './oauth2/oauth2.ts'
import { oneaccess } from './oauth2/oneaccess.ts'
import { ruoyi } from './oauth2/ruoyi.ts'
import { saToken } from './oauth2/sa-token.ts'
import { wecom } from './oauth2/wecom.ts'
import { aliyunEiam } from './oidc/aliyun-eiam.ts'
import { auth0 } from './oidc/auth0.ts'
import { authelia } from './oidc/authelia.ts'
import { authentik } from './oidc/authentik.ts'
import { authing } from './oidc/authing.ts'
import { casdoor } from './oidc/casdoor.ts'
import { entra } from './oidc/entra.ts'
import { gitea } from './oidc/gitea.ts'
import { gitlab } from './oidc/gitlab.ts'
import { google } from './oidc/google.ts'
import { keycloak } from './oidc/keycloak.ts'
import { logto } from './oidc/logto.ts'
import { oidc } from './oidc/oidc.ts'
import { okta } from './oidc/okta.ts'
import { tencentEiam } from './oidc/tencent-eiam.ts'
import { zitadel } from './oidc/zitadel.ts'
import type { Preset } from './preset.ts'

export const PRESETS: Readonly<Record<string, Preset>> = {
  idaas,
  oidc,
  oauth2,
  keycloak,
  casdoor,
  maxkey,
  authing,
  logto,
  zitadel,
  authentik,
  authelia,
  auth0,
  okta,
  google,
  entra,
  github,
  gitlab,
  gitea,
  gitee,
  feishu,
  lark,
  dingtalk,
  wecom,
  'aliyun-eiam': aliyunEiam,
  oneaccess,
  'tencent-eiam': tencentEiam,
  bamboocloud,
  'sa-token': saToken,
  ruoyi,
}
